"""Exits with 0 if each service named on the command line answers /health: `healthy http://127.0.0.1:8080 ...`."""

import http.client
import sys
from urllib.parse import urlsplit

for base in sys.argv[1:]:
    service = http.client.HTTPConnection(urlsplit(base).netloc, timeout=2)
    service.request("GET", "/health")
    if service.getresponse().status != http.HTTPStatus.OK:
        sys.exit(f"{base} is not healthy")
