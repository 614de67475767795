"""An HTTP server on uvloop and httptools: listening sockets, connections, requests, answers."""
