"""Pod Security: what the levels `baseline` and `restricted` of the Pod Security Standards forbid, in every version.

    policy      the labels of a namespace, read: what is enforced, what is noted in the audit log, what is warned of
    subject     a pod as the checks see it, and the words that they share
    baseline    what no ordinary pod needs
    restricted  what a hardened pod must say besides
    standards   which checks a level has in which version, and what they find

Pure, as the whole package. Texts are those of Kubernetes, because people and programs look for them.
"""
