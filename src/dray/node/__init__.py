"""The node agent: what a kubelet does for DRA drivers and their pods."""
