#!/usr/bin/env bash
# Boots a kernel in an emulator and counts the data frames that mac80211 sends under No Ack: bench/noack.sh PACKAGE.deb
#
# PACKAGE.deb is one of Debian's linux-image packages. Takes qemu-system-x86_64, busybox, hostapd, iw, tcpdump, python3 and two
# minutes. Two radios of mac80211_hwsim are an access point and its client in namespaces of their own. The access point sends 20 echo
# requests before `iw set noack_map 0xffff` and 20 after it. Prints both counts and exits with 1 unless all of the second 20 say No Ack.
set -euo pipefail
package=$(realpath "${1:?usage: bench/noack.sh PACKAGE.deb}")
# shellcheck source=bench/guest.sh
. "$(dirname "$0")/guest.sh"
guest_begin "$package"
guest_programs hostapd iw tcpdump
guest_modules mac80211_hwsim
cat >"$guest_root/etc/hostapd.conf" <<'CONF'
interface=wlan0
ssid=noack
hw_mode=g
channel=1
wmm_enabled=1
CONF
guest_boot 600 <<'INIT'
# The client's radio has a network of its own: otherwise the kernel delivers between two of its addresses without any radio.
unshare -n sleep 1000 &
sleep 1
client=$!
iw phy phy1 set netns "$client"
there() { nsenter -t "$client" -n "$@"; }
hostapd -B /etc/hostapd.conf >/dev/null
ip addr add 198.18.0.1/24 dev wlan0
there ip link set wlan1 up
there ip addr add 198.18.0.2/24 dev wlan1
there iw dev wlan1 connect -w noack >/dev/null
ip link set hwsim0 up
ping -c 3 -W 5 198.18.0.2 >/dev/null
for map in 0x0000 0xffff; do
    iw dev wlan0 set noack_map "$map" || echo "RESULT noack_map $map refused"
    tcpdump -Z root -i hwsim0 -w "/tmp/$map" -U 2>/dev/null &
    capture=$!
    sleep 2
    echo "RESULT noack_map $map: $(ping -c 20 -W 5 198.18.0.2 | grep -o "[0-9]* packets received")"
    sleep 2
    kill "$capture"
    wait "$capture"
    echo "CAPTURE $map $(base64 -w 0 "/tmp/$map")"
done
INIT
# Ack Policy is bits 5 and 6 of QoS Control, 1 is No Ack (802.11-2020, 9.2.4.5.4).
python3 - "$guest_text" <<'PYTHON'
import base64, re, struct, sys

good = False
for found in re.finditer(r"^CAPTURE (\w+) (\S+)$", open(sys.argv[1], errors="replace").read(), re.M):
    capture, at, policies = base64.b64decode(found.group(2)), 24, []
    while at + 16 <= len(capture):
        length = struct.unpack_from("<I", capture, at + 8)[0]
        frame = capture[at + 16 : at + 16 + length]
        frame = frame[struct.unpack_from("<H", frame, 2)[0] :]
        at += 16 + length
        # QoS data from the access point, to one station, that carries an ICMP echo request.
        if len(frame) > 54 and frame[0] == 0x88 and frame[1] & 3 == 2 and not frame[4] & 1 and frame[54] == 8:
            policies.append(frame[24] >> 5 & 3)
    good = found.group(1) == "0xffff" and len(policies) >= 20 and set(policies) == {1}
    print(f"noack_map {found.group(1)}: {policies.count(1)} of {len(policies)} data frames under No Ack")
sys.exit(not good)
PYTHON
