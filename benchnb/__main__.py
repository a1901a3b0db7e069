"The command line where the script is not on the path: `python -m benchnb`"

import sys

from benchnb.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
