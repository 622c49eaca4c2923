"""One module per stage or group of actions: an options model, a function of (context, options), and `SPECS` that names them."""
