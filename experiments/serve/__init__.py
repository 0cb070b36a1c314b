"""The HTTP server: `app.build` makes it, `jaxgames serve` runs it."""
