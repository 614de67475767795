"""llama.cpp on this machine: where its server is, how it is called, and a server of our own from its library."""
