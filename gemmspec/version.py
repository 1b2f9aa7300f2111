"""The version, read by the build and by `gemmspec --version`."""

__version__ = "0.1.0"
