"""One TOML file into strict typed values."""
