"""Input and output: everything that talks to the API server, and the small machines that decide when it may."""
