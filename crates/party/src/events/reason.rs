//! Why something failed, as far as an event may say it.

use super::public::Public;
use std::fmt::{self, Display, Formatter};

/// A cause and its remedy: a literal of this program, in which public fields stand. An error's own text never gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    code: &'static str,
    text: String,
}

impl Reason {
    /// `template` with the fields in place of their names in braces; `code` names the kind of failure, for machines. Use
    /// [`reason!`], which checks the names at compile time.
    pub fn new(code: &'static str, template: &'static str, fields: &[(&str, &dyn Shows)]) -> Reason {
        let mut text = template.to_owned();
        for (name, field) in fields {
            text = text.replace(&format!("{{{name}}}"), &field.text());
        }
        Reason { code, text }
    }

    /// For machines: `net.closed`.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is [`Public`], as text.
pub trait Shows {
    /// The text.
    fn text(&self) -> String;
}

impl<T: Public> Shows for T {
    fn text(&self) -> String {
        self.to_string()
    }
}

/// What events may say of an error.
pub trait Why {
    /// The reason.
    fn why(&self) -> Reason;
}

/// `reason!("code", "text with {field}", field = value)`: each value is [`Public`], and each name stands in the text.
macro_rules! reason {
    ($code:literal, $template:literal $(, $name:ident = $value:expr)* $(,)?) => {{
        $(
            #[allow(clippy::redundant_locals, reason = "a caller's variable may have the name of its field")]
            let $name = $value;
        )*
        // Checks the names; never runs.
        let _ = || format!($template $(, $name = $name)*);
        $crate::events::Reason::new($code, $template, &[$((stringify!($name), &$name)),*])
    }};
}
pub(crate) use reason;

#[cfg(test)]
mod tests {
    use super::super::{Count, Name};

    #[test]
    fn a_reason_is_its_text_with_its_fields() {
        let reason = reason!(
            "test.lacks",
            "{who} lacks {n} keys: deal {n}",
            who = Name::of("alice"),
            n = Count::of(3)
        );
        assert_eq!(
            (reason.code(), reason.to_string().as_str()),
            ("test.lacks", "alice lacks 3 keys: deal 3")
        );
        // A field's text is not a template.
        let reason = reason!("test.braces", "{a} and {b}", a = Name::of("{b}"), b = Count::of(1));
        assert_eq!(reason.to_string(), "(unnamed) and 1");
    }
}
