# Steps of scripts/package that put a tree (bundle.sh) into a .deb and an .rpm, by the tools of these formats themselves, which compress
# best; sourced, never run. Two packages of one tree are byte-equal: every file has the time of $SOURCE_DATE_EPOCH.
# shellcheck shell=bash disable=SC2154

# A .deb of the tree $2, for architecture $1, in folder $3. Its bytes do not depend on how many threads compress: xz works in blocks.
deb_of() {
    local architecture=$1 tree=$2 folder=build/package/deb-$1
    rm -rf "$folder"
    cp --archive --link "$tree" "$folder"
    mkdir "$folder/DEBIAN"
    cat >"$folder/DEBIAN/control" <<CONTROL
Package: nicbench
Version: $version
Architecture: $architecture
Section: net
Priority: optional
Maintainer: The nicbench authors <nicbench@localhost>
Installed-Size: $(du --summarize --apparent-size --block-size=1024 "$tree" | cut --fields=1)
Depends: libc6 (>= 2.36), libgcc-s1, libstdc++6, iproute2, ethtool, pciutils, nftables, procps
Description: NIC performance lab in one tool
 RFC 2544 throughput and latency of network cards and devices, streams, shares and storage over networks, from one bench
 file to a report.
CONTROL
    dpkg-deb --root-owner-group -Zxz -z9 --build "$folder" "$3" >&2
}

# An .rpm of the tree $2, for architecture $1, in folder $3.
rpm_of() {
    local machine folder=build/package/rpm-$1
    machine=$(triplet_of "$1")
    machine=${machine%%-*}
    command -v rpmbuild >/dev/null || fail "an .rpm cannot be made" "apt-get install rpm"
    rm -rf "$folder"
    rpmbuild --quiet -bb --target "$machine" --define "_topdir $PWD/$folder" --define "_rpmdir $PWD/$3" \
        --define '_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' \
        --define "nicbench_version $version" --define "nicbench_tree $PWD/$2" packaging/nicbench.spec >&2
    rm -rf "$folder"
}
