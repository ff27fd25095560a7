//! `[tcp]`.

use tacit_congestion::{Algorithm, bbr, cubic, rre};
use tacit_packet::IpVersion;
use tacit_packet::units::{Bytes, Duration};
use tacit_tcp::{self as tcp, AckPolicy, DelayedAcks, LinuxAcks, Profile, Reading, ReceiveAutotuning};

use crate::AckOptions;
use crate::error::InputError;
use crate::input::{Section, byte_count, within};
use crate::keys::tcp::{Policy, ReceiveBuffer};
use crate::keys::wifi::MAX_WIFI_PACKET;
use crate::keys::{fill, tcp as keys};

/// Minimum MTU with room for headers, options and payload, and the minimum MTU of IPv6 (RFC 8200 section 5).
const MIN_MTU: [Bytes; 2] = [Bytes(256), Bytes(1_280)];

pub(super) fn tcp_section(
    section: Section<'_>,
    has_wifi: bool,
) -> Result<(tcp::Config, ForSchemes), InputError> {
    let usual = keys::PROFILE.or(&section, Profile::default())?.config();
    let mut config = usual;
    fill(keys::TCP, &section, &mut config)?;
    let smallest = MIN_MTU[usize::from(config.ip == IpVersion::V6)];
    let largest = if has_wifi { MAX_WIFI_PACKET } else { Bytes(65_535) };
    config.mtu = section.or(keys::MTU, config.mtu, within(smallest..=largest, byte_count))?;
    (config.receive_buffer, config.receive_autotuning) = receive_buffer(&section, &usual)?;
    let rre = rre::Config {
        target: keys::RRE_TARGET.given(&section)?.flatten(),
        memory: keys::RRE_MEMORY.or(&section, rre::Memory::default())?,
    };
    let cubic = cubic_choices(&section, usual.congestion.algorithm)?;
    config.congestion.algorithm = algorithm(&section, usual.congestion.algorithm, cubic, rre)?;
    let acks = AckOptions::read(&section)?;
    config.ack_policy = acks.chosen(keys::ACK_POLICY.given(&section)?, usual.ack_policy);
    section.finish()?;
    Ok((config, ForSchemes { acks, cubic, rre }))
}

/// Settings of the section that schemes need but that may not be part of its configuration.
pub(super) struct ForSchemes {
    pub acks: AckOptions,
    pub cubic: cubic::Config,
    pub rre: rre::Config,
}

/// `receive-buffer`, a size or `"auto"`, and `receive-buffer-max`, the limit of automatic growth.
fn receive_buffer(
    section: &Section<'_>,
    usual: &tcp::Config,
) -> Result<(Bytes, ReceiveAutotuning), InputError> {
    let growing = (ReceiveAutotuning::LINUX_START, ReceiveAutotuning::LINUX);
    let (start, autotuning) = match keys::RECEIVE_BUFFER.given(section)? {
        None => (usual.receive_buffer, usual.receive_autotuning),
        Some(ReceiveBuffer::Auto) => growing,
        Some(ReceiveBuffer::Rsfc) => (ReceiveAutotuning::LINUX_START, ReceiveAutotuning::RSFC),
        Some(ReceiveBuffer::Size(size)) => (size, ReceiveAutotuning::Off),
    };
    match (autotuning, keys::RECEIVE_BUFFER_MAX.given(section)?) {
        (ReceiveAutotuning::Off, Some(_)) => {
            Err(section
                .error(keys::RECEIVE_BUFFER_MAX.name, "only where receive-buffer is \"auto\" or \"rsfc\""))
        }
        (ReceiveAutotuning::UpTo(_), Some(max)) => {
            Ok((Bytes(start.0.min(max.0)), ReceiveAutotuning::UpTo(max)))
        }
        (ReceiveAutotuning::Rsfc(_), Some(max)) => {
            Ok((Bytes(start.0.min(max.0)), ReceiveAutotuning::Rsfc(max)))
        }
        _ => Ok((start, autotuning)),
    }
}

/// The options of CUBIC. `usual` is the profile's controller.
fn cubic_choices(section: &Section<'_>, usual: Algorithm) -> Result<cubic::Config, InputError> {
    let usual = match usual {
        Algorithm::Cubic(cubic) => cubic,
        _ => cubic::Config::USUAL,
    };
    Ok(cubic::Config { slow_start: keys::SLOW_START.or(section, usual.slow_start)? })
}

/// Reads the options of every controller, selected or not.
fn algorithm(
    section: &Section<'_>,
    usual: Algorithm,
    cubic: cubic::Config,
    rre: rre::Config,
) -> Result<Algorithm, InputError> {
    let algorithm = keys::CONGESTION.or(section, usual)?;
    let bbr = bbr::Config { policer: keys::BBR_POLICER.or(section, bbr::Config::USUAL.policer)? };
    Ok(match algorithm {
        Algorithm::Rre(_) => Algorithm::Rre(rre),
        Algorithm::Cubic(_) => Algorithm::Cubic(cubic),
        Algorithm::Bbr(_) => Algorithm::Bbr(bbr),
        without_choices => without_choices,
    })
}

impl AckOptions {
    fn read(section: &Section<'_>) -> Result<Self, InputError> {
        let usual = DelayedAcks::default();
        let (packets, max_delay, threshold) = AckPolicy::ACK_FREQUENCY;
        Ok(Self {
            delayed: DelayedAcks {
                every: keys::ACK_EVERY.or(section, usual.every)?,
                delay: keys::ACK_DELAY.or(section, usual.delay)?,
                quick_ack_segments: keys::QUICK_ACKS.or(section, usual.quick_ack_segments)?,
            },
            linux: LinuxAcks { gro_flush: keys::GRO_FLUSH.or(section, Duration::ZERO)? },
            ack_frequency: AckPolicy::quic_ackfreq(
                keys::ACKFREQ_PACKETS.or(section, packets)?,
                keys::ACKFREQ_DELAY.or(section, max_delay)?,
                keys::ACKFREQ_REORDERING.or(section, threshold)?,
                keys::ACKFREQ_READING.or(section, None)?.map_or(Reading::ALL, Reading),
            ),
        })
    }

    /// The policy that `given` names with its options, or `usual`, that of the profile.
    fn chosen(&self, given: Option<Policy>, usual: AckPolicy) -> AckPolicy {
        match (given, usual) {
            (Some(Policy::Linux), _) | (None, AckPolicy::Linux(_)) => AckPolicy::Linux(self.linux),
            (Some(Policy::Delayed), _) | (None, _) => AckPolicy::Delayed(self.delayed),
            (Some(Policy::AckFrequency), _) => self.ack_frequency,
            (Some(Policy::Fixed(policy)), _) => policy,
        }
    }
}
