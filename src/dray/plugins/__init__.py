"""gRPC contracts between a node and its DRA drivers, as published by Kubernetes."""
