"""Wire formats, sans-IO: bytes in, values out. The only core that may parse."""
