# Steps of scripts/package that put the program with a Python of its own into one tree, /usr/lib/nicbench, for .deb, .rpm
# and image; sourced, never run. The Python is that of Debian 12, so that the tree needs a glibc of 2.36 or later.
# shellcheck shell=bash disable=SC2154

# Python in parts, what its modules are linked against, and bpftool, which Ubuntu has for some of its kernels only.
PYTHON=python3.11
PARTS="$PYTHON-minimal lib$PYTHON-minimal lib$PYTHON-stdlib libssl3 libffi8 zlib1g liblzma5 libbz2-1.0 libexpat1 libuuid1 libsqlite3-0 bpftool libelf1 libcap2"

# The tree of architecture $1 in build/package/tree-$1, from the wheel $2.
build_tree() {
    local architecture=$1 wheel=$2 triplet parts tree home packages name file
    triplet=$(triplet_of "$architecture")
    parts=build/package/parts-$architecture tree=build/package/tree-$architecture
    home=$tree/usr/lib/nicbench
    if [ ! -e "$parts/complete" ]; then
        rm -rf "$parts"
        unpack_packages "$parts" $(for name in $PARTS; do echo "$name:$architecture/$RELEASE"; done)
        touch "$parts/complete"
    fi
    say "putting the tree for $architecture together"
    rm -rf "$tree"
    mkdir -p "$home"/{bin,python/{bin,lib}} "$tree"/usr/{bin,share/doc/nicbench}
    cp "$parts/root/usr/bin/$PYTHON" "$home/python/bin/"
    cp -r "$parts/root/usr/lib/$PYTHON" "$home/python/lib/"
    cp "$parts/root/usr/sbin/bpftool" "$home/bin/"
    for file in "$parts"/root/usr/lib/"$triplet"/*.so.*; do
        cp --no-dereference "$file" "$home/python/lib/"
    done
    patchelf --set-rpath '$ORIGIN/../lib' "$home/python/bin/$PYTHON"
    patchelf --set-rpath '$ORIGIN/../python/lib' "$home/bin/bpftool"
    for file in "$home/python/lib/$PYTHON"/lib-dynload/*.so; do patchelf --set-rpath '$ORIGIN/../..' "$file"; done
    for file in "$home"/python/lib/*.so.*; do [ -L "$file" ] || patchelf --set-rpath '$ORIGIN' "$file"; done

    packages=$home/python/lib/$PYTHON/dist-packages
    install_packages_for "$architecture" "$wheel" "$packages"
    .venv/bin/python packaging/prune.py "$home/python/lib/$PYTHON" >&2
    link_copies "$packages"
    strip_for "$triplet" "$packages"
    find "$home" -name __pycache__ -prune -exec rm -rf {} +
    # Nothing but the engine is started from here by its own name.
    rm -rf "$packages/bin"
    find "$home/python/lib" -type f -perm /111 -not -path '*/nicbench/bin/*' -exec chmod a-x {} +
    grep --recursive --files-with-matches --null --include='*.py' -m 1 '^#!' "$home/python/lib" | xargs -0 sed -i '1s/^#!.*/#/'
    cp packaging/nicbench "$tree/usr/bin/nicbench"
    chmod 755 "$tree/usr/bin/nicbench"
    .venv/bin/python packaging/manual.py "$tree/usr/share"
    mkdir -p "$tree/usr/share/doc/nicbench"
    gzip -9n <CHANGELOG.md >"$tree/usr/share/doc/nicbench/CHANGELOG.md.gz"
    .venv/bin/python packaging/materials.py tree "$tree/usr/share/doc/nicbench" "$parts/debs" "$packages"
    find "$tree" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# The wheel $2 and all that it needs, by the hashes of requirements.lock, into folder $3.
install_packages_for() {
    local architecture=$1 wheel=$2 folder=$3 machine minor platforms=() kept=build/package/dependencies-$1 wanted compiled=''
    machine=$(triplet_of "$architecture")
    machine=${machine%%-*}
    for minor in $(seq 35 -1 5); do platforms+=(--platform "manylinux_2_${minor}_$machine"); done
    platforms+=(--platform "manylinux2014_$machine" --platform "manylinux2010_$machine" --platform "manylinux1_$machine")
    wanted=$(.venv/bin/python packaging/closure.py)
    if ! stamped "$kept/requirements.txt" "$wanted"; then
        rm -rf "$kept" && mkdir -p "$kept"
        if [ "$architecture" != amd64 ]; then
            compiled=$(.venv/bin/python packaging/closure.py hdrhistogram)
            printf '%s\n' "$compiled" >"$kept/compiled.txt"
            compile_hdrhistogram "$architecture" "$kept"
        fi
        printf '%s\n' "${wanted/"$compiled"/}" >"$kept/wanted.txt"
        pip_for "$kept/packages" "${platforms[@]}" --only-binary :all: --require-hashes --requirement "$kept/wanted.txt"
        printf '%s\n' "$wanted" >"$kept/requirements.txt"
    fi
    cp -r "$kept/packages" "$folder"
    pip_for "$folder" "${platforms[@]}" --no-index "$wheel"
    # Where the wheel lay is nobody's business, and would make packages of two folders differ.
    rm "$folder"/nicbench-*.dist-info/direct_url.json
    sed -i '/direct_url\.json/d' "$folder"/nicbench-*.dist-info/RECORD
}

# hdrhistogram, which has wheels for amd64 alone, into folder $2/packages: the Python of such a wheel, and its one C file,
# compiled for architecture $1.
compile_hdrhistogram() {
    local triplet root sources=build/package/sources-$1 requirements=$2/compiled.txt
    triplet=$(triplet_of "$1")
    root=$(sysroot "$1")
    rm -rf "$sources"
    unpack_packages "$sources" "lib$PYTHON-dev:$1/$RELEASE"
    .venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-binary :all: --require-hashes \
        --dest "$sources" --requirement "$requirements" >&2 || fail "the source of hdrhistogram is not to be had" "look at pip's message above"
    tar -xzf "$sources"/hdrhistogram-*.tar.gz -C "$sources"
    pip_for "$2/packages" --platform manylinux2014_x86_64 --only-binary :all: --require-hashes --requirement "$requirements"
    rm -r "$2"/packages/{bin,pyhdrh.*.so}
    sed -i '/^pyhdrh/d' "$2"/packages/hdrhistogram-*.dist-info/RECORD
    "$triplet-gcc" --sysroot="$root" -O2 -fPIC -shared -I "$sources/root/usr/include/$PYTHON" -I "$sources/root/usr/include" \
        -ffile-prefix-map="$sources"=. -o "$2/packages/pyhdrh.cpython-311-$triplet.so" "$sources"/hdrhistogram-*/src/python-codec.c
}

# pip for the Python of the tree, into folder $1.
pip_for() {
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-compile --python-version 3.11 --implementation cp \
        --target "$@" >&2 || fail "Python packages are not to be had" "look at pip's message above"
}

# Takes the names of functions out of the libraries in folder $2, for the machine of triplet $1: 40 MB, which no report of a crash
# needs. Not of NumPy: its makers moved sections (patchelf), and strip then makes libraries that do not load.
strip_for() {
    local strip=strip
    if command -v "$1-strip" >/dev/null; then strip=$1-strip; fi
    find "$2" -path '*/numpy*' -prune -o -name '*.so*' -type f -exec "$strip" --strip-unneeded {} +
}

# Files of folder $1 that are the same become links to one of them: a wheel has no links.
link_copies() {
    local sum file last='' first=''
    find "$1" -name '*.so*' -type f -exec sha256sum {} + | sort | while read -r sum file; do
        if [ "$sum" = "$last" ]; then ln -sf --relative "$first" "$file"; else last=$sum first=$file; fi
    done
}
