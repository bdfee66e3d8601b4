//! What messages say, and their bodies.

use astraea_policy::{AgentConfig, Form};

use super::{WireError, codec};
use crate::report::NUMBERS;
use crate::{HISTORY, Report};

/// Bytes of a request's body before its reports.
pub(super) const ASK: usize = 16;

/// Bytes of a report.
pub(super) const REPORT: usize = 8 * NUMBERS;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// A client asks for a session; the token is a random number of its own.
    Hello {
        /// Comes back in the answer.
        token: u64,
    },
    /// A session, which is in the header, and what is served.
    Welcome {
        /// The client's token.
        token: u64,
        /// What is served.
        terms: Terms,
    },
    /// A request for a decision.
    Ask(Ask<'a>),
    /// A decision.
    Answer(Answer),
    /// There will be no decision.
    Refuse(Refusal),
    /// A flow has ended.
    End {
        /// Which one.
        flow: u64,
    },
}

/// What a service serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// How the policy is embedded.
    pub form: Form,
    /// Hash of the definition of what it sees ([`Form::definition_hash`]).
    pub definition: u64,
    /// Action scale.
    pub alpha: f64,
    /// Monitoring period in ns.
    pub period: u64,
    /// Version of the policy.
    pub version: u64,
}

impl Terms {
    /// How an agent under these terms is driven.
    pub fn agent(&self) -> AgentConfig {
        AgentConfig { alpha: self.alpha, period: self.period, ..AgentConfig::new(self.form) }
    }
}

/// A request for a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask<'a> {
    /// The flow, a number of the client's choice.
    pub flow: u64,
    /// Number of the newest period, counted from 1.
    pub period: u32,
    /// The newest period and those before it.
    pub reports: Reports<'a>,
}

/// Reports of consecutive periods, oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reports<'a> {
    /// To be sent.
    Given(&'a [Report]),
    /// As they came; checked.
    Received(&'a [u8]),
}

impl Reports<'_> {
    /// How many there are: 1 to [`HISTORY`].
    pub fn len(&self) -> usize {
        match self {
            Self::Given(reports) => reports.len(),
            Self::Received(bytes) => bytes.len() / REPORT,
        }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The report at this place; none if it is beyond the last or one of its numbers cannot be.
    pub fn get(&self, index: usize) -> Option<Report> {
        match self {
            Self::Given(reports) => reports.get(index).copied(),
            Self::Received(bytes) => {
                let bytes = bytes.get(index * REPORT..(index + 1) * REPORT)?;
                let mut numbers = [0.0; NUMBERS];
                for (index, number) in numbers.iter_mut().enumerate() {
                    *number = f64::from_bits(codec::word(bytes, 8 * index));
                }
                Report::from_numbers(&numbers)
            }
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Given(reports) => {
                reports.iter().flat_map(Report::numbers).for_each(|number| out.extend(number.to_le_bytes()));
            }
            Self::Received(bytes) => out.extend(*bytes),
        }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The flow.
    pub flow: u64,
    /// The period that it answers.
    pub period: u32,
    /// The network's action, -1 to 1.
    pub action: f64,
    /// What action and law make of the reported window, in bytes, for senders without an agent; without floor or cap.
    pub window: f64,
    /// Version of the policy.
    pub version: u64,
}

/// Why there is no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The session is not known, or no longer, or belongs to another peer: say hello.
    Session,
    /// There are as many flows or sessions as the service takes.
    Full,
    /// Another version of the protocol.
    Version,
}

impl Reason {
    /// Every reason; its number on the wire is its place, from 1.
    pub const ALL: [Self; 3] = [Self::Session, Self::Full, Self::Version];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Full => "full",
            Self::Version => "version",
        }
    }
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The flow, 0 if the request was not about one.
    pub flow: u64,
    /// The period.
    pub period: u32,
    /// Why.
    pub reason: Reason,
}

impl Message<'_> {
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Welcome { .. } => 2,
            Self::Ask(_) => 3,
            Self::Answer(_) => 4,
            Self::Refuse(_) => 5,
            Self::End { .. } => 6,
        }
    }

    /// Whether a body of this kind may have this many bytes.
    pub(super) fn fits(kind: u8, bytes: usize) -> Result<(), WireError> {
        let fits = match kind {
            1 | 6 => bytes == 8,
            2 => bytes == 48,
            3 => (1..=HISTORY).any(|count| bytes == ASK + count * REPORT),
            4 => bytes == 40,
            5 => bytes == 16,
            _ => return Err(WireError::Kind),
        };
        if fits { Ok(()) } else { Err(WireError::Length) }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { token } => out.extend(token.to_le_bytes()),
            Self::Welcome { token, terms } => {
                let form = Form::ALL.iter().position(|form| *form == terms.form).expect("all forms") as u64;
                for word in [*token, terms.definition, terms.version, terms.alpha.to_bits(), terms.period, form] {
                    out.extend(word.to_le_bytes());
                }
            }
            Self::Ask(ask) => {
                out.extend(ask.flow.to_le_bytes());
                out.extend(ask.period.to_le_bytes());
                out.extend((ask.reports.len() as u32).to_le_bytes());
                ask.reports.write(out);
            }
            Self::Answer(answer) => {
                out.extend(answer.flow.to_le_bytes());
                out.extend(u64::from(answer.period).to_le_bytes());
                for word in [answer.action.to_bits(), answer.window.to_bits(), answer.version] {
                    out.extend(word.to_le_bytes());
                }
            }
            Self::Refuse(refusal) => {
                let reason = Reason::ALL.iter().position(|reason| *reason == refusal.reason).expect("all reasons");
                out.extend(refusal.flow.to_le_bytes());
                out.extend(refusal.period.to_le_bytes());
                out.extend((reason as u32 + 1).to_le_bytes());
            }
            Self::End { flow } => out.extend(flow.to_le_bytes()),
        }
    }
}

impl<'a> Message<'a> {
    /// The message with this body, which [`fits`](Self::fits).
    pub(super) fn read(kind: u8, body: &'a [u8]) -> Result<Self, WireError> {
        let (word, half) = (|at| codec::word(body, at), |at| codec::half(body, at));
        let number = |at: usize| f64::from_bits(word(at));
        let valid = |valid: bool| if valid { Ok(()) } else { Err(WireError::Value) };
        Ok(match kind {
            1 => Self::Hello { token: word(0) },
            2 => {
                let form = *Form::ALL.get(word(40) as usize).ok_or(WireError::Value)?;
                let terms = Terms { form, definition: word(8), version: word(16), alpha: number(24), period: word(32) };
                valid(terms.alpha > 0.0 && terms.alpha <= 1.0 && (1_000_000..=1_000_000_000).contains(&terms.period))?;
                Self::Welcome { token: word(0), terms }
            }
            3 => {
                let (period, reports) = (half(8), Reports::Received(&body[ASK..]));
                valid(reports.len() == half(12) as usize && reports.len() as u64 <= u64::from(period))?;
                valid((0..reports.len()).all(|index| reports.get(index).is_some()))?;
                Self::Ask(Ask { flow: word(0), period, reports })
            }
            4 => {
                let answer = Answer {
                    flow: word(0),
                    period: half(8),
                    action: number(16),
                    window: number(24),
                    version: word(32),
                };
                valid(answer.action.abs() <= 1.0 && (0.0..=f64::MAX).contains(&answer.window) && half(12) == 0)?;
                Self::Answer(answer)
            }
            5 => {
                let reason = *Reason::ALL.get((half(12) as usize).wrapping_sub(1)).ok_or(WireError::Value)?;
                Self::Refuse(Refusal { flow: word(0), period: half(8), reason })
            }
            6 => Self::End { flow: word(0) },
            _ => return Err(WireError::Kind),
        })
    }
}
