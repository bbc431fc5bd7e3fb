"""Made by `python -m tools.generate_protos`; do not edit."""
