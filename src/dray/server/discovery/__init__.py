"""What the server tells about itself: groups, versions and resources, OpenAPI documents, and its other pages."""
