//! Finds what can be broken in a source file: every place where one small change gives another program that may compile.
//!
//! Left out: tests, constants and whatever else is evaluated at compile time, types, patterns, attributes, and the arguments of macros.

use proc_macro2::Span;
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// What of the file it concerns, in bytes.
    pub place: Range<usize>,
    /// First line of that, from 1.
    pub line: usize,
    /// What is put there instead.
    pub change: Change,
}

/// What is done to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The expression becomes this one.
    Replace(String),
    /// The statement is left out.
    Drop,
    /// The function, whose body begins here, returns this at once.
    Return(String),
}

/// Everything that can be broken in a file.
///
/// # Errors
/// When it is not Rust.
pub fn mutations(text: &str) -> syn::Result<Vec<Mutation>> {
    let mut finder = Finder { text, found: Vec::new() };
    finder.visit_file(&syn::parse_file(text)?);
    Ok(finder.found)
}

/// The modules in files of their own that only tests have.
///
/// # Errors
/// When it is not Rust.
pub fn test_modules(text: &str) -> syn::Result<Vec<String>> {
    let is_for_tests = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    };
    let items = syn::parse_file(text)?.items.into_iter();
    let modules = items.filter_map(|item| match item {
        syn::Item::Mod(item) if item.content.is_none() && item.attrs.iter().any(is_for_tests) => Some(item.ident),
        _ => None,
    });
    Ok(modules.map(|name| name.to_string()).collect())
}

struct Finder<'a> {
    text: &'a str,
    found: Vec<Mutation>,
}

/// A chain of `&&` with `let` in it is no expression that may stand elsewhere.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

fn other_operator(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Mul(_) => "+",
        BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::BitAndAssign(_) => "|=",
        BinOp::BitOrAssign(_) => "&=",
        _ => return None,
    })
}

/// Values that a function of this type may return in place of what it computes.
fn constants(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, kind) = output else { return &[] };
    let Type::Path(path) = &**kind else { return &[] };
    let Some(last) = path.path.segments.last() else { return &[] };
    match last.ident.to_string().as_str() {
        "bool" => &["true", "false"],
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => &["0", "1"],
        "Option" => &["None"],
        "Result" => &["Ok(Default::default())"],
        _ => &[],
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg"),
        syn::Meta::NameValue(_) => false,
    })
}

impl Finder<'_> {
    fn add(&mut self, span: Span, change: Change) {
        self.found.push(Mutation { place: span.byte_range(), line: span.start().line, change });
    }

    fn source(&self, span: Span) -> &str {
        &self.text[span.byte_range()]
    }

    fn negate(&mut self, condition: &Expr) {
        // Comparisons have their own change, and a negation would be the same as another one of them.
        if !has_let(condition) && !matches!(condition, Expr::Binary(_)) {
            let negated = format!("!({})", self.source(condition.span()));
            self.add(condition.span(), Change::Replace(negated));
        }
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let Some(operator) = other_operator(&binary.op).filter(|_| !has_let(&binary.left) && !has_let(&binary.right))
        else {
            return;
        };
        let (left, right) = (self.source(binary.left.span()), self.source(binary.right.span()));
        let changed = format!("{left} {operator} {right}");
        self.add(binary.span(), Change::Replace(changed));
    }

    fn integer(&mut self, literal: &syn::LitInt) {
        let Ok(value) = literal.base10_parse::<u128>() else { return };
        let suffix = literal.suffix();
        self.add(literal.span(), Change::Replace(format!("{}{suffix}", value + 1)));
        if value > 0 {
            self.add(literal.span(), Change::Replace(format!("{}{suffix}", value - 1)));
        }
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        if signature.constness.is_none() && !body.stmts.is_empty() {
            // What returns a constant anyway does not change.
            let text = self.source(body.span()).trim_matches(['{', '}']).trim().to_string();
            for value in constants(&signature.output).iter().filter(|value| **value != text) {
                self.add(body.brace_token.span.open(), Change::Return((*value).into()));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::If(branch) => self.negate(&branch.cond),
            Expr::While(branch) => self.negate(&branch.cond),
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(literal), .. }) => self.integer(literal),
            Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
                let operand = format!("({})", self.source(unary.expr.span()));
                self.add(unary.span(), Change::Replace(operand));
            }
            // Its length is a constant.
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if let Stmt::Expr(expression, Some(_)) = statement
            && matches!(expression, Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Try(_))
        {
            self.add(statement.span(), Change::Drop);
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !is_test(&item.attrs) && item.sig.constness.is_none() {
            self.function(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) && item.sig.constness.is_none() {
            self.function(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // What is only printed for people is not the subject of tests.
        let printed = item.trait_.as_ref().is_some_and(|(path, _)| {
            path.segments.last().is_some_and(|last| last.ident == "Debug" || last.ident == "Display")
        });
        if !is_test(&item.attrs) && !printed {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(text: &str) -> Vec<(String, String)> {
        let found = mutations(text).expect("is Rust");
        let shown = found.iter().map(|one| {
            let change = match &one.change {
                Change::Replace(other) => other.clone(),
                Change::Drop => String::new(),
                Change::Return(value) => format!("return {value}"),
            };
            (text[one.place.clone()].to_string(), change)
        });
        shown.collect()
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.into(), to.into())
    }

    #[test]
    fn a_function_that_is_a_constant_returns_another_one() {
        assert_eq!(changes("fn f() -> bool { true }"), [pair("{", "return false")]);
    }

    #[test]
    fn operators_literals_conditions_and_results_change() {
        let found = changes("fn f(a: u8) -> bool { if a.is_odd() { return a < 3; } g(a) }");
        let wanted = [
            pair("{", "return true"),
            pair("{", "return false"),
            pair("a.is_odd()", "!(a.is_odd())"),
            pair("a < 3", "a <= 3"),
            pair("3", "4"),
            pair("3", "2"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn statements_are_dropped() {
        assert_eq!(
            changes("fn f() { a.b(); c()?; d = e; }"),
            [pair("a.b();", ""), pair("c()?;", ""), pair("d = e;", "")]
        );
    }

    #[test]
    fn what_is_constant_or_a_test_stays() {
        let constant = "const A: u8 = 1 + 2; const fn f() -> u8 { 3 } static B: [u8; 4] = [0; 5];";
        assert!(changes(constant).is_empty());
        assert!(changes("#[cfg(test)] mod tests { fn f() { g(1); } } #[test] fn h() { i(2); }").is_empty());
        assert!(changes("fn f() { match a { 1..=2 => {}, _ => {} } }").is_empty());
        assert_eq!(changes("fn f() { let a = [b; 7]; }"), []);
    }

    #[test]
    fn modules_of_tests_are_found_in_their_parent() {
        let text = "#[cfg(test)] mod a; mod b; #[cfg(feature = \"test\")] mod c; #[cfg(test)] mod d {}";
        assert_eq!(test_modules(text).expect("is Rust"), ["a"]);
    }

    #[test]
    fn chains_with_let_are_left_whole() {
        let found = changes("fn f() { if let Some(a) = b && a == c {} }");
        assert_eq!(found, [pair("a == c", "a != c")]);
    }
}
