//! Computes the constants of `abi/`: integers made of other integers.

use abi::call::KERNEL_CALL_NAMES;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use syn::{BinOp, Expr, Lit, UnOp};

/// The constants known so far, by their full path, such as `endpoint::slot::RS`.
#[derive(Default)]
pub struct Constants {
    values: BTreeMap<String, i128>,
}

impl Constants {
    /// Adds a constant.
    pub fn insert(&mut self, scope: &[String], name: &str, value: i128) {
        self.values.insert(join(scope, name), value);
    }

    /// The value of an expression that stands in `scope`.
    ///
    /// # Errors
    /// When it is more than sums, shifts and sets of bits of known constants.
    pub fn value(&self, scope: &[String], expression: &Expr) -> Result<i128> {
        match expression {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => Ok(number.base10_parse()?),
                _ => bail!("a literal that is no integer"),
            },
            Expr::Paren(inner) => self.value(scope, &inner.expr),
            Expr::Group(inner) => self.value(scope, &inner.expr),
            Expr::Cast(cast) => self.value(scope, &cast.expr),
            Expr::Unary(unary) => match unary.op {
                UnOp::Neg(_) => Ok(-self.value(scope, &unary.expr)?),
                _ => bail!("an operator that C constants here do not need"),
            },
            Expr::Binary(binary) => {
                operate(&binary.op, self.value(scope, &binary.left)?, self.value(scope, &binary.right)?)
            }
            Expr::Path(path) => self.named(scope, &words(&path.path)),
            Expr::Call(call) => self.wrapped(scope, call),
            _ => bail!("an expression that is more than a constant"),
        }
    }

    /// `Endpoint(5)`, `GrantId(0)`, and `Endpoint::current(slot)`, which is the slot.
    fn wrapped(&self, scope: &[String], call: &syn::ExprCall) -> Result<i128> {
        let Expr::Path(function) = &*call.func else { bail!("a call of an unnamed function") };
        let name = words(&function.path).join("::");
        match (name.as_str(), call.args.first()) {
            ("Endpoint" | "GrantId" | "Errno" | "Endpoint::current", Some(value)) => self.value(scope, value),
            _ => bail!("a call of {name}"),
        }
    }

    fn named(&self, scope: &[String], path: &[String]) -> Result<i128> {
        let name = path.join("::");
        if let [kind, constant] = path
            && let Some(value) = limit(kind, constant).or_else(|| kernel_call(kind, constant))
        {
            return Ok(value);
        }
        let path = name.trim_start_matches("crate::");
        let scopes = (0..=scope.len()).rev().map(|depth| join(&scope[..depth], path));
        let found = scopes.into_iter().find_map(|full| self.values.get(&full).copied());
        found.or_else(|| self.imported(path)).with_context(|| format!("the constant {name} is not known here"))
    }

    /// A constant of another module that `use` has brought in: there is only one of the name.
    fn imported(&self, name: &str) -> Option<i128> {
        let end = format!("::{name}");
        let mut found = self.values.iter().filter(|(path, _)| path.ends_with(&end)).map(|(_, value)| *value);
        found.next().filter(|_| found.next().is_none())
    }
}

fn operate(operator: &BinOp, left: i128, right: i128) -> Result<i128> {
    Ok(match operator {
        BinOp::Add(_) => left + right,
        BinOp::Sub(_) => left - right,
        BinOp::Mul(_) => left * right,
        BinOp::Div(_) if right != 0 => left / right,
        BinOp::BitOr(_) => left | right,
        BinOp::Shl(_) => left << right,
        _ => bail!("an operator that C constants here do not need"),
    })
}

fn limit(kind: &str, name: &str) -> Option<i128> {
    match (kind, name) {
        ("u64", "MAX") => Some(u64::MAX.into()),
        ("u32", "MAX") => Some(u32::MAX.into()),
        _ => None,
    }
}

fn kernel_call(kind: &str, name: &str) -> Option<i128> {
    let (_, call) = KERNEL_CALL_NAMES.iter().find(|(known, _)| kind == "KernelCall" && *known == name)?;
    Some(*call as i128)
}

fn words(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn join(scope: &[String], name: &str) -> String {
    scope.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<i128> {
        let mut constants = Constants::default();
        constants.insert(&["endpoint".to_string(), "slot".to_string()], "RS", 4);
        constants.insert(&["endpoint".to_string()], "SLOTS", 1152);
        let scope = ["endpoint".to_string()];
        constants.value(&scope, &syn::parse_str(text).expect("parses"))
    }

    #[test]
    fn constants_of_this_and_outer_modules_are_found() {
        assert_eq!(value("slot::RS as u32").expect("is known"), 4);
        assert_eq!(value("crate::endpoint::SLOTS / 64").expect("is known"), 18);
        assert_eq!(value("Endpoint::current(slot::RS)").expect("is known"), 4);
    }

    #[test]
    fn bits_and_limits_are_computed() {
        assert_eq!(value("1 << KernelCall::Yield as u64 | 2 << 20").expect("is constant"), (1 << 42) | (2 << 20));
        assert_eq!(value("u64::MAX").expect("is constant"), u64::MAX.into());
    }

    #[test]
    fn what_is_no_constant_is_refused() {
        assert!(value("OTHER").is_err());
        assert!(value("size_of::<u8>()").is_err());
        assert!(value("\"text\"").is_err());
    }
}
