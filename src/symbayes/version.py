"""The version of the library, where modules to the left of the public names can read it."""

__version__ = "0.1.0"
