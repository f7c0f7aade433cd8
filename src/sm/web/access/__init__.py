"""Who gets in from a browser: a single-use link becomes a device, which is listed and revoked."""
