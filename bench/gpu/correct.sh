#!/usr/bin/env bash
# On a machine with a GPU: are the kernels of build/gpu right? About 5 minutes. Results in $OUT, or build/results.
#
#   python bench/gpu/build.py         # before, where TVM and nvcc are
#   bash bench/gpu/correct.sh
set -o pipefail
cd "$(dirname "$0")/../.."
export PYTHONUNBUFFERED=1 OUT="${OUT:-build/results}"
mkdir -p "$OUT"
status=0

# A kernel that hangs ends its process (status 97) and is left out of the next try.
try() {
    for _ in 1 2 3 4 5; do
        timeout -k 5 "$@"
        local ended=$?
        [ "$ended" = 97 ] || break
    done
    [ "$ended" = 0 ] || { echo "FAILED ($ended): $*"; status=1; }
}

main() {
    nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,power.limit --format=csv,noheader
    # Small products first: what hangs or is wrong shows at once.
    try 120 python3 bench/gpu/check.py --largest 600 --repeats 0
    try 60 python3 bench/gpu/host.py
    try 90 python3 -m pytest tests/gpu -m gpu -p no:cacheprovider
    try 240 python3 bench/gpu/check.py "$@"
    try 200 python3 bench/gpu/sanitize.py
    return $status
}

main "$@" 2>&1 | tee "$OUT/correct.log"
