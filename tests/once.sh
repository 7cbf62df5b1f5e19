# Sourced by the scripts that make what tests run: each thing once for every state of its sources, in a cache outside
# the clone.

# once PART HASH ABOUT COMMAND...: prints the folder of this part and hash. Where there is none, COMMAND makes it, with
# a fresh folder as one more argument.
once() {
  local cache="${BERTH_CACHE:-${HOME:?}/.cache/berth}/$1" folder about=$3
  folder="$cache/$2"
  shift 3
  if [ ! -d "$folder" ]; then
    echo "making $about in $folder, once" >&2
    mkdir -p "$cache"
    fresh=$(mktemp -d "$cache/.making.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    "$@" "$fresh" >&2
    # Whoever makes it at the same time makes the same: the first to arrive stays.
    [ -d "$folder" ] || mv "$fresh" "$folder"
  fi
  echo "$folder"
}

# needs PROGRAM ADDRESS: ends with 3 where a program is missing.
needs() {
  command -v "$1" >/dev/null 2>&1 || { echo "it is not made yet, and that needs $1: $2" >&2; exit 3; }
}

# published MODULE VERSION SUM: prints the folder of a published Go module with this checksum. Its go.sum holds those of
# its dependencies. Built there, as the main module, its replace lines are in force.
published() {
  local module
  module=$(go mod download -json "$1@$2")
  field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" <<<"$module"; }
  if [ "$(field Sum)" != "$3" ]; then
    echo "$1@$2 has the checksum $(field Sum), not $3" >&2
    exit 1
  fi
  field Dir
}
