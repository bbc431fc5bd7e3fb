"""Which devices the rules and patches select, kept up to date as either side changes. Pure.

rule, patch ─▶ owners ─▶ criteria          what each asks for, compiled; owners knows whose answer is stale
slices ─▶ columns ─▶ slice_groups          slices that look the same to what an expression reads
                        │
criteria × groups ─▶ evaluation            once per group for all selections that read the same;
                        │                  required_text spares most of it
                     selection             the devices that one rule or patch selects
                        │
                     index                 all selections, asked by slice
"""
