# Boots one of Debian's kernels in an emulator, with a few programs of this machine. Other scripts source it. It prints what the guest
# prints behind `RESULT `. Takes qemu-system-x86_64 and busybox.

# guest_begin PACKAGE.deb: an empty guest for the kernel of this linux-image package.
guest_begin() {
    guest_work=$(mktemp -d)
    trap 'rm -rf "$guest_work"' EXIT
    guest_root=$guest_work/root
    mkdir -p "$guest_root"/{bin,dev,proc,sys,tmp,run,lib/modules,etc} "$guest_work/kernel"
    cp "$(command -v busybox)" "$guest_root/bin/busybox"
    echo root:x:0:0::/:/bin/sh >"$guest_root/etc/passwd"
    dpkg-deb --fsys-tarfile "$1" | tar -x -C "$guest_work/kernel"
}

# guest_programs PROGRAM...: copies them, with the libraries that they name.
guest_programs() {
    local program file
    for program in "$@"; do
        file=$(command -v "$program")
        cp "$file" "$guest_root/bin/"
        { ldd "$file" 2>/dev/null || true; } | { grep -o '/[^ ]*' || true; } | while read -r library; do
            mkdir -p "$guest_root$(dirname "$library")"
            cp -L "$library" "$guest_root$library"
        done
    done
}

# guest_modules MODULE...: loads them when it boots, in an order that satisfies them.
guest_modules() {
    local modules module
    modules=$(echo "$guest_work"/kernel/lib/modules/*)
    depmod -b "$guest_work/kernel" "$(basename "$modules")"
    for module in "$@"; do
        modprobe -d "$guest_work/kernel" -S "$(basename "$modules")" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
    done | awk '!seen[$0]++' >"$guest_work/order"
    : >"$guest_root/modules"
    while read -r module; do
        cp "$module" "$guest_root/lib/modules/"
        echo "/lib/modules/$(basename "$module")" >>"$guest_root/modules"
    done <"$guest_work/order"
}

# guest_boot SECONDS: runs the shell script in standard input, for so long at most. Its output is in $guest_text; results are printed.
guest_boot() {
    {
        cat <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "$module"; done </modules
echo "RESULT kernel $(uname -r)"
ip link set lo up
INIT
        cat
        echo 'poweroff -f'
    } >"$guest_root/init"
    chmod +x "$guest_root/init"
    (cd "$guest_root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$guest_work/initrd")
    timeout "$1" qemu-system-x86_64 -accel tcg -cpu max -m 1024 -nographic -no-reboot \
        -kernel "$guest_work"/kernel/boot/vmlinuz* -initrd "$guest_work/initrd" -append 'console=ttyS0 quiet rdinit=/init' \
        </dev/null >"$guest_work/console" 2>&1 || true
    guest_text=$guest_work/text
    tr -d '\r' <"$guest_work/console" >"$guest_text"
    grep -o 'RESULT .*' "$guest_text" | sed 's/^RESULT //' || echo "the kernel did not boot"
}
