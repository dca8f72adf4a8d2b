#!/bin/sh
# Stands for ASTRA-sim: as many ranks finish as the word says that is no option; each file that is named must exist.
finished=8
for word in "$@"; do
  case $word in
    --workload-configuration=*) test -f "${word#*=}.0.et" || exit 3 ;;
    --*-configuration=*) test -f "${word#*=}" || exit 3 ;;
    *) finished=$word ;;
  esac
done
rank=$finished
while [ "$rank" -gt 0 ]; do
  rank=$((rank - 1))
  echo "[workload] [info] sys[$rank] finished, $((100 + rank)) cycles, exposed communication 0 cycles."
done
