from adapters.engine_http.conftest import each_loop as each_loop
