"Settings of every test run: no window, no network, no torch behind POT"

import os

for name, value in {
    "MPLBACKEND": "agg",
    "HF_HUB_OFFLINE": "1",
    "POT_BACKEND_DISABLE_PYTORCH": "1",
}.items():
    os.environ.setdefault(name, value)
