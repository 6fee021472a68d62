#!/usr/bin/env bash
# Makes the .ptx files again from the .cu files, with nvcc: the kernels in this folder, those with the planted
# fault in faults/. `build.sh KERNEL [faults]` makes one of them, in the folder $TW_PTX_OUT.
set -euo pipefail
cd "$(dirname "$0")"
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

compile() {  # KERNEL OUT [FLAG]
  local arch=sm_90a
  [[ $1 == tcgen05* ]] && arch=sm_100a
  "$nvcc" -std=c++20 -arch=$arch -lineinfo ${3-} -ptx "$1.cu" -o "$2/$1.ptx"
  # Source files by their names alone: the text is the same wherever it was made.
  sed -i -E 's|^(\s*\.file\s+[0-9]+ ")[^"]*/|\1|' "$2/$1.ptx"
}

if (($#)); then
  compile "$1" "$TW_PTX_OUT" "${2:+-DFAULT}"
  exit
fi
for source in *.cu; do
  compile "${source%.cu}" .
  compile "${source%.cu}" faults -DFAULT
done
