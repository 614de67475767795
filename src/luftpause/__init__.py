"""luftpause: the layer between agent harnesses and inference engines that keeps the run."""

__version__ = "0.1.0"
