//! One type for every controller.

use crate::{
    Allegro, Bbr, Bbr3, C2tcp, Compound, ConstantRate, ConstantWindow, Controller, Copa, Cubic, Illinois, NewReno,
    Remy, Successor, Vegas, Vivace, Westwood, forward_controller,
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

forward_controller!(
    AnyController: NewReno, Cubic, Copa, Vegas, Compound, Illinois, Westwood, C2tcp, Bbr, Bbr3, Allegro, Vivace, Remy,
    ConstantRate, ConstantWindow, Manual, Custom
);
