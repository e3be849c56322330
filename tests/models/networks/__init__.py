"""The networks of make_models.py, a module for each family. Importing it registers all of them."""
# In the order of --list and of the groups.
from networks import cnn, detection, encoders, decoders, other, tiny  # noqa: F401
from networks.macs import macs_of
from networks.registry import GROUPS, PUBLISHED, REG

__all__ = ["GROUPS", "PUBLISHED", "REG", "macs_of"]
