"""The driver conformance kit: kubelet and API server played against any DRA driver."""
