//! SOCKS5 (RFC 1928) for local programs: CONNECT, without authentication.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::target::{Host, Target};
use super::{ProxyError, ReplyCode};

const VERSION: u8 = 5;
/// RFC 1928, §3.
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHODS: u8 = 0xff;
/// RFC 1928, §4.
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN_NAME: u8 = 3;
const IPV6: u8 = 4;
/// RFC 1928, §6.
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// Reads the target of a program's request. If there is none, answers with the reason; otherwise the caller must send a
/// [`reply`].
///
/// # Errors
/// If it requests something else, or the connection breaks.
pub async fn request<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<Target, ProxyError> {
    let protocol = |what: &str| ProxyError::Protocol(what.to_owned());
    if stream.read_u8().await? != VERSION {
        return Err(protocol("not SOCKS5"));
    }
    let mut methods = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NO_ACCEPTABLE_METHODS]).await?;
        return Err(protocol("the program insists on authentication"));
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != VERSION {
        return Err(protocol("not SOCKS5"));
    }
    if command != CONNECT {
        answer(stream, COMMAND_NOT_SUPPORTED).await?;
        return Err(protocol("a command of SOCKS5 other than CONNECT"));
    }
    let host = match kind {
        IPV4 => Ok(Host::Address(IpAddr::V4(Ipv4Addr::from_bits(stream.read_u32().await?)))),
        IPV6 => Ok(Host::Address(IpAddr::V6(Ipv6Addr::from_bits(stream.read_u128().await?)).to_canonical())),
        DOMAIN_NAME => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| "not a name".to_owned()).and_then(|name| name.parse())
        }
        _ => {
            answer(stream, ADDRESS_TYPE_NOT_SUPPORTED).await?;
            return Err(protocol("an unknown type of address"));
        }
    };
    let port = stream.read_u16().await?;
    match host {
        Ok(host) if port > 0 => Ok(Target { host, port }),
        _ => {
            reply(stream, ReplyCode::Failed).await?;
            Err(protocol("not a target"))
        }
    }
}

/// Sends the outcome of the request to the program.
///
/// # Errors
/// If the connection breaks.
pub async fn reply<S: AsyncWrite + Unpin>(stream: &mut S, code: ReplyCode) -> Result<(), ProxyError> {
    // Programs only know the codes of the RFC.
    let code = if code == ReplyCode::Busy { ReplyCode::Failed } else { code };
    answer(stream, code as u8).await
}

async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, code: u8) -> Result<(), ProxyError> {
    // The server end's local address is not revealed.
    stream.write_all(&[VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]).await?;
    Ok(stream.flush().await?)
}
