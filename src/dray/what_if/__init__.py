"""What would a change do? The difference of two snapshots, and previews of taints: who has to leave, when, where to.

    before, after: Snapshot ─▶ compare ─▶ Difference        devices, claims and pods that a change concerns
    Snapshot, taint ─────────▶ preview ─▶ TaintPreview      the same for a taint that nobody has written yet

Both play evictions with the pieces that evict for real (`dray.eviction`). Answers are data first; `difference_text` and
`taint_preview_text` put them into words. Pure: may import `dray.snapshot` and what is below it.
"""

from dray.what_if.difference import Difference, compare

__all__ = ["Difference", "compare"]
