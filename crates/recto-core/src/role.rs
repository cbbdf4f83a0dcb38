//! Roles of messages.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The author of a message. The contract has these four roles, so the enum is closed: a `match` needs no
/// other arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person or program that uses the model.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl Role {
    /// All roles, in their usual order.
    pub const ALL: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];

    /// The role with this name in JSON.
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }

    /// Whether it is [`Role::System`].
    pub fn is_system(self) -> bool {
        self == Role::System
    }

    /// The index in [`Role::ALL`]. It never changes, because stores keep it.
    pub fn number(self) -> usize {
        self as usize
    }

    pub(crate) fn from_number(number: u32) -> Role {
        Role::ALL[(number & 3) as usize]
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A set of roles.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RoleSet(u8);

impl RoleSet {
    /// Every role.
    pub const ALL: RoleSet = RoleSet(0b1111);
    /// No role.
    pub const NONE: RoleSet = RoleSet(0);

    /// Whether `role` is in the set.
    pub fn contains(self, role: Role) -> bool {
        self.0 & (1 << role.number()) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without `role`.
    pub fn without(self, role: Role) -> RoleSet {
        RoleSet(self.0 & !(1 << role.number()))
    }

    /// The roles of the set.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |&role| self.contains(role))
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        RoleSet(roles.into_iter().fold(0, |set, role| set | 1 << role.number()))
    }
}

impl<const N: usize> From<[Role; N]> for RoleSet {
    fn from(roles: [Role; N]) -> Self {
        roles.into_iter().collect()
    }
}

impl From<Role> for RoleSet {
    fn from(role: Role) -> Self {
        RoleSet(1 << role.number())
    }
}

impl fmt::Debug for RoleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
