"""The OpenAPI description of the proxy, made from its table of routes, and a page that shows it."""
