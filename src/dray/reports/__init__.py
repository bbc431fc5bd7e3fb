"""Reports to send around: one HTML file with pictures, or the map of the fleet as SVG or PNG.

    snapshot, difference, plan ─▶ documents (sections) ─▶ html (one file)
                     └─▶ fleet_map (shapes) ─▶ svg, png

Pure: what a report is about was worked out below, what is made of it are texts and bytes. A report asks for nothing
from anywhere: its policy forbids it, styles are in it, pictures are inline, and what came from a cluster is text.
"""
