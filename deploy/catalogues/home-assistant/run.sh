#!/bin/sh
# The service and its jobs in one container, as the user of the image. The key is in the log of the add-on.
set -eu
install -d -o 10001 -g 10001 -m 700 "$SNAPLORE_DATA_DIR"
setpriv --reuid 10001 --regid 10001 --clear-groups snaplore jobs schedule &
exec setpriv --reuid 10001 --regid 10001 --clear-groups snaplore serve
