# A server of OpenSSH for measurements; sourced by the scripts beside it.

# Makes, in the directory WORK, keys of a host and of a user, and the configuration of a server that lets that user in as root.
prepare_sshd() {
    local work=$1
    mkdir -p "$work/keys" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$work/keys/host"
    ssh-keygen -q -t ed25519 -N '' -f "$work/keys/user"
    cat >"$work/sshd_config" <<SSHD
Port 22
HostKey $work/keys/host
AuthorizedKeysFile $work/keys/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
SSHD
}
