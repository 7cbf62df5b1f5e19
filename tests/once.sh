# Sourced by the scripts that make what tests run: each thing once for every state of its sources, in a cache outside
# the clone.

# once PART HASH ABOUT COMMAND...: prints the folder of this part and hash. Where there is none, COMMAND makes it, with
# a fresh folder as one more argument. Of all callers on this machine one makes something, and the others wait: each
# build takes all processors.
once() {
  local caches="${BERTH_CACHE:-${HOME:?}/.cache/berth}" cache folder about=$3 begun
  cache="$caches/$1"
  folder="$cache/$2"
  shift 3
  if [ ! -d "$folder" ]; then
    mkdir -p "$cache"
    exec 9>"$caches/making.lock"
    flock --nonblock 9 || { echo "waiting for another build before making $about" >&2; flock 9; }
    if [ ! -d "$folder" ]; then
      echo "making $about in $folder, once" >&2
      begun=$SECONDS
      find "$cache" -mindepth 1 -maxdepth 1 -name '.making.*' -exec rm -rf {} +
      fresh=$(mktemp -d "$cache/.making.XXXXXX")
      trap 'rm -rf "$fresh"' EXIT
      # Servers that a command leaves running hold no lock.
      "$@" "$fresh" >&2 9>&-
      mv "$fresh" "$folder"
      echo "made $about in $((SECONDS - begun)) s" >&2
    fi
    exec 9>&-
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
