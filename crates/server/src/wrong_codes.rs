//! Bounds how many wrong sign-in codes one address may send.
//!
//! A code has 128 random bits, so guessing is hopeless; the bound keeps the log and the database quiet. It does not apply
//! to right codes: a person who shares an IP address with an attacker, as behind a proxy, can still sign in.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many wrong codes an address may send per [`WINDOW`].
const WRONG_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// The maximum number of counted addresses; beyond it, all are forgotten.
const ADDRESSES_MAX: usize = 10_000;

/// The address of the client of a connection.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The wrong codes of the last minute, by address.
#[derive(Default)]
pub(crate) struct WrongCodes(Mutex<HashMap<IpAddr, (Instant, u32)>>);

impl WrongCodes {
    /// Counts a wrong code; an error has the number of seconds after which the address may try again.
    pub(crate) fn count(&self, peer: Peer, now: Instant) -> Result<(), u64> {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if addresses.len() >= ADDRESSES_MAX {
            addresses.clear();
        }
        let (since, wrong) = addresses.entry(network(peer.0)).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *wrong) = (now, 0);
        }
        *wrong = wrong.saturating_add(1);
        match *wrong > WRONG_MAX {
            true => Err((*since + WINDOW).saturating_duration_since(now).as_secs() + 1),
            false => Ok(()),
        }
    }
}

/// One client has a whole /64 of IPv6 addresses.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_send_ten_wrong_codes_a_minute_and_others_are_not_affected() {
        let (codes, start) = (WrongCodes::default(), Instant::now());
        let (one, same) = ("2001:db8::1".parse().expect("an address"), "2001:db8::2".parse().expect("an address"));
        let other = Peer("2001:db8:0:1::1".parse().expect("an address"));
        for _ in 0..5 {
            assert_eq!((codes.count(Peer(one), start), codes.count(Peer(same), start)), (Ok(()), Ok(())));
        }
        assert_eq!(codes.count(Peer(one), start + Duration::from_secs(20)), Err(41));
        assert_eq!(codes.count(other, start), Ok(()));
        assert_eq!(codes.count(Peer(one), start + WINDOW), Ok(()));
    }
}
