# Steps of scripts/package that compile; sourced, never run. Two builds of one commit are byte-equal.
# shellcheck shell=bash disable=SC2154

# The oldest glibc that is linked against is that of Debian 11 (2.31); DPDK is that of Debian 12.
OLD_RELEASE=bullseye
OLD_GCC=10
RELEASE=bookworm
MIRROR=${NICBENCH_DEBIAN_MIRROR:-http://deb.debian.org/debian}
DEBIAN_KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nicbench

triplet_of() {
    case "$1" in
        amd64) echo x86_64-linux-gnu ;;
        arm64) echo aarch64-linux-gnu ;;
        *) fail "there is no build for $1" "amd64 or arm64" ;;
    esac
}

# apt with lists and packages of its own, of both releases and both architectures; nothing is installed.
apt_apart() {
    local folder=$CACHE/packages
    mkdir -p "$folder"/{lists/partial,archives/partial}
    touch "$folder/status"
    printf 'deb [arch=amd64,arm64 signed-by=%s] %s %s main\n' \
        $DEBIAN_KEYS "$MIRROR" $OLD_RELEASE $DEBIAN_KEYS "$MIRROR" $RELEASE >"$folder/sources.list"
    cat >"$folder/apt.conf" <<CONFIGURATION
Dir::State "$folder"; Dir::State::Lists "$folder/lists"; Dir::State::status "$folder/status"; Dir::Cache "$folder";
Dir::Etc::SourceList "$folder/sources.list"; Dir::Etc::SourceParts "-"; Acquire::Languages "none";
APT::Architecture "amd64"; APT::Architectures {"amd64"; "arm64";}; APT::Sandbox::User "root";
CONFIGURATION
    [ -n "$(find "$folder/lists" -name '*_Packages*' -mtime -1)" ] ||
        APT_CONFIG=$folder/apt.conf apt-get update --quiet >&2 || fail "the lists of packages are not to be had" "look at the network"
    APT_CONFIG=$folder/apt.conf "$@"
}

# Downloads the packages $2... (name:architecture/release) into folder $1 and unpacks them in $1/root; each is kept beside it.
unpack_packages() {
    local folder=$1 package
    shift
    mkdir -p "$folder/debs" "$folder"/root/usr/{lib,lib64}
    ln -sfn usr/lib "$folder/root/lib"
    ln -sfn usr/lib64 "$folder/root/lib64"
    (cd "$folder/debs" && apt_apart apt-get download --quiet "$@" >&2) || fail "Debian's packages are not to be had" "look at the network"
    for package in "$folder"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$folder/root"
    done
}

# What a program for architecture $1 is compiled and linked against, kept in the cache; prints its folder.
sysroot() {
    local architecture=$1 folder=$CACHE/sysroots/$1 headers name link
    if [ ! -e "$folder/complete-$OLD_GCC" ]; then
        say "fetching what programs for $architecture are linked against"
        rm -rf "$folder"
        headers=$(apt_apart apt-get install --simulate --no-install-recommends "libdpdk-dev:$architecture/$RELEASE" |
            sed -n 's/^Inst \([^ :]*-dev\)[ :].*/\1/p' | grep --invert-match --extended-regexp '^(libc6|libcrypt|linux-libc|libnsl|libtirpc)-dev$')
        unpack_packages "$folder" $(for name in $headers; do echo "$name:$architecture/$RELEASE"; done) \
            $(for name in libc6 libc6-dev libcrypt1 libcrypt-dev libgcc-$OLD_GCC-dev linux-libc-dev; do echo "$name:$architecture/$OLD_RELEASE"; done)
        find "$folder/root" -type l -lname '/*' -printf '%p %l\n' | while read -r name link; do
            ln -sfn "$folder/root$link" "$name"
        done
        find "$folder/root" -name '*.pc' -exec sed -i "s|=/usr|=$folder/root/usr|" {} +
        mkdir -p "$folder/root/unwinder" # without the rest of the old libgcc, which lacks what newer objects call
        ln -sfn ../usr/lib/gcc/"$(triplet_of "$architecture")"/$OLD_GCC/libgcc_eh.a "$folder/root/unwinder/libgcc_eh.a"
        touch "$folder/complete-$OLD_GCC"
    fi
    echo "$folder/root"
}

# Everything that is compiled, for architecture $1, into build/package/bin-$1.
build_engines() {
    local architecture=$1 triplet target root program folder=build/package/bin-$1 linker=cc
    triplet=$(triplet_of "$architecture")
    target=${triplet/-linux/-unknown-linux}
    root=$(sysroot "$architecture")
    [ "$(dpkg --print-architecture)" = "$architecture" ] || linker=$triplet-gcc
    command -v $linker >/dev/null || fail "programs for $architecture cannot be linked" "apt-get install gcc-${triplet/_/-}"
    rustup target add "$target" 2>/dev/null || true
    say "compiling for $architecture, which takes some minutes"
    (
        cd engine
        export PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_ALLOW_CROSS=1
        export CARGO_TARGET_DIR=$PWD/../build/package/target "CC_${target//-/_}=$linker"
        export "CFLAGS_${target//-/_}=--sysroot=$root -ffile-prefix-map=$root= -ffile-prefix-map=$PWD=."
        export "CARGO_TARGET_$(echo "${target//-/_}" | tr a-z A-Z)_LINKER=$linker"
        # What gcc brings along (libgcc_s) was linked with a newer glibc; the program itself is not.
        flags="-C link-arg=--sysroot=$root -C link-arg=-Wl,--allow-shlib-undefined -C strip=symbols"
        flags="$flags --remap-path-prefix=${PWD%/engine}=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
        # A static program takes its unwinder from the old release, too: that of a newer gcc asks its glibc for more.
        RUSTFLAGS="$flags -C target-feature=+crt-static -L $root/unwinder" \
            cargo build --release --locked --quiet --target "$target" --package nicbench-monitor \
            --package nicbench-frames --package nicbench-agent --package nicbench-connections || exit
        RUSTFLAGS=$flags cargo build --release --locked --quiet --target "$target" --package nicbench-packets
    ) >&2 || fail "the engine does not build for $architecture" "read the compiler's message above"
    rm -rf "$folder" && mkdir -p "$folder"
    for program in packets monitor frames agent connections; do
        install -m 755 "build/package/target/$target/release/nicbench-$program" "$folder/"
    done
    build_programs "$folder"
}

# The oldest glibc that the programs in folder $1 start with, as 2_30: of the one that is not static.
oldest_glibc() {
    objdump -T "$1/nicbench-packets" | grep --only-matching 'GLIBC_2\.[0-9]*' | sort --version-sort --unique |
        tail --lines 1 | sed 's/GLIBC_//; s/\./_/'
}
