"""Container Device Interface specs: types, validation, reading and writing."""
