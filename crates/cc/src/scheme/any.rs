//! One type for every controller.

use crate::{
    Ack, Allegro, Bbr, Bbr3, C2tcp, Compound, Congestion, ConstantRate, ConstantWindow, Controller, Copa, Cubic,
    Illinois, Loss, LostPacket, Nanos, NewReno, Remy, Rtt, Successor, Vegas, Vivace, Westwood,
};

use super::Manual;

/// A controller of any scheme. A transport that holds this calls it by a jump on the variant, which the compiler can
/// see through, and needs neither a type parameter nor an allocation for each flow.
#[non_exhaustive]
pub enum AnyController {
    /// See [`NewReno`].
    NewReno(NewReno),
    /// See [`Cubic`].
    Cubic(Cubic),
    /// See [`Copa`].
    Copa(Copa),
    /// See [`Vegas`].
    Vegas(Vegas),
    /// See [`Compound`].
    Compound(Compound),
    /// See [`Illinois`].
    Illinois(Illinois),
    /// See [`Westwood`].
    Westwood(Westwood),
    /// See [`C2tcp`].
    C2tcp(C2tcp),
    /// See [`Bbr`].
    Bbr(Bbr),
    /// See [`Bbr3`].
    Bbr3(Bbr3),
    /// See [`Allegro`].
    Allegro(Allegro),
    /// See [`Vivace`].
    Vivace(Vivace),
    /// See [`Remy`].
    Remy(Remy),
    /// See [`ConstantRate`].
    ConstantRate(ConstantRate),
    /// See [`ConstantWindow`].
    ConstantWindow(ConstantWindow),
    /// Driven from outside; not a scheme that a user can name.
    Manual(Manual),
    /// A controller that this crate does not know.
    Custom(Box<dyn Controller + Send + Sync>),
}

/// The controller inside, where it can take a connection over and hand it on.
macro_rules! successor {
    ($any:expr) => {
        match $any {
            AnyController::Bbr(controller) => Some(controller),
            AnyController::Cubic(controller) => Some(controller),
            AnyController::Illinois(controller) => Some(controller),
            AnyController::C2tcp(controller) => Some(controller),
            AnyController::Westwood(controller) => Some(controller),
            AnyController::Vegas(controller) => Some(controller),
            _ => None,
        }
    };
}

impl AnyController {
    /// The controller that an agent drives, if this is one.
    #[inline]
    pub fn as_manual(&mut self) -> Option<&mut Manual> {
        match self {
            Self::Manual(manual) => Some(manual),
            _ => None,
        }
    }

    /// The controller as one that can hand the connection on, if it is.
    #[inline]
    pub fn successor(&self) -> Option<&dyn Successor> {
        successor!(self)
    }

    /// The controller as one that can take a connection over, if it is.
    pub fn successor_mut(&mut self) -> Option<&mut dyn Successor> {
        successor!(self)
    }
}

impl std::fmt::Debug for AnyController {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NewReno(controller) => controller.fmt(f),
            Self::Cubic(controller) => controller.fmt(f),
            Self::Copa(controller) => controller.fmt(f),
            Self::Vegas(controller) => controller.fmt(f),
            Self::Compound(controller) => controller.fmt(f),
            Self::Illinois(controller) => controller.fmt(f),
            Self::Westwood(controller) => controller.fmt(f),
            Self::C2tcp(controller) => controller.fmt(f),
            Self::Bbr(controller) => controller.fmt(f),
            Self::Bbr3(controller) => controller.fmt(f),
            Self::Allegro(controller) => controller.fmt(f),
            Self::Vivace(controller) => controller.fmt(f),
            Self::Remy(controller) => controller.fmt(f),
            Self::ConstantRate(controller) => controller.fmt(f),
            Self::ConstantWindow(controller) => controller.fmt(f),
            Self::Manual(controller) => controller.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// The same expression for the controller inside, whichever it is.
macro_rules! each {
    ($any:expr, $controller:ident => $call:expr) => {
        match $any {
            AnyController::NewReno($controller) => $call,
            AnyController::Cubic($controller) => $call,
            AnyController::Copa($controller) => $call,
            AnyController::Vegas($controller) => $call,
            AnyController::Compound($controller) => $call,
            AnyController::Illinois($controller) => $call,
            AnyController::Westwood($controller) => $call,
            AnyController::C2tcp($controller) => $call,
            AnyController::Bbr($controller) => $call,
            AnyController::Bbr3($controller) => $call,
            AnyController::Allegro($controller) => $call,
            AnyController::Vivace($controller) => $call,
            AnyController::Remy($controller) => $call,
            AnyController::ConstantRate($controller) => $call,
            AnyController::ConstantWindow($controller) => $call,
            AnyController::Manual($controller) => $call,
            AnyController::Custom($controller) => $call,
        }
    };
}

impl Controller for AnyController {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        each!(self, controller => controller.on_sent(now, bytes, in_flight));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        each!(self, controller => controller.on_ack(ack, rtt));
    }

    #[inline]
    fn on_packet_lost(&mut self, packet: &LostPacket) {
        each!(self, controller => controller.on_packet_lost(packet));
    }

    #[inline]
    fn on_loss(&mut self, loss: &Loss) {
        each!(self, controller => controller.on_loss(loss));
    }

    #[inline]
    fn on_congestion(&mut self, event: &Congestion) {
        each!(self, controller => controller.on_congestion(event));
    }

    #[inline]
    fn reduces_proportionally(&self) -> bool {
        each!(self, controller => controller.reduces_proportionally())
    }

    #[inline]
    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        each!(self, controller => controller.on_timeout(now, flight_size));
    }

    #[inline]
    fn on_spurious_congestion(&mut self, now: Nanos) {
        each!(self, controller => controller.on_spurious_congestion(now));
    }

    #[inline]
    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        each!(self, controller => controller.on_idle_restart(now, idle));
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        each!(self, controller => controller.next_timer())
    }

    #[inline]
    fn on_timer(&mut self, now: Nanos) {
        each!(self, controller => controller.on_timer(now));
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        each!(self, controller => controller.cwnd())
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        each!(self, controller => controller.pacing_rate())
    }
}
