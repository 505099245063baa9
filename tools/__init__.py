"""Development tools; no part of the product."""
