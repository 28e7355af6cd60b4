"""Request handlers, one module for each topic. They hold no SQL, and errors are raised by name."""
