//! The tool `calculate`: an expression by Python's rules.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use super::python;
use super::tool::{Answer, Call, Kind, Parameter, Shape, Tool, ToolError, fail, required};

/// Bits a whole number may have on the way: far beyond any float, and no unbounded work.
const MOST_BITS: u64 = 1 << 16;
/// Parentheses within each other, and powers of powers.
const DEEPEST: usize = 200;

/// The tool, the same in every world.
pub(super) const fn tool<W>() -> Tool<W> {
    const PARAMETERS: &[Parameter] = &[required(
        "expression",
        Shape::Text,
        "Numbers, + - * /, parentheses and blanks, such as `(2 + 3) * 4.5`.",
    )];
    Tool {
        name: "calculate",
        kind: Kind::Generic,
        description: "Work out an arithmetic expression.",
        parameters: PARAMETERS,
        run: |_, call| run(call),
    }
}

fn run(call: &Call) -> Answer {
    let expression = call.text("expression")?;
    let is_allowed = |char: char| char.is_ascii_digit() || "+-*/(). ".contains(char);
    if !expression.chars().all(is_allowed) {
        return fail("Invalid characters in expression");
    }
    let value = evaluate(expression)?.float()?;
    Ok(python::float(python::round(value)))
}

#[derive(Debug, Clone, PartialEq)]
enum Number {
    Int(BigInt),
    Float(f64),
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(Number),
    Sign(&'static str),
}

fn syntax<T>() -> Result<T, ToolError> {
    fail("invalid syntax")
}

fn evaluate(expression: &str) -> Result<Number, ToolError> {
    let tokens = tokens(expression)?;
    let mut parser = Parser {
        tokens: &tokens,
        depth: 0,
    };
    let value = parser.sum()?;
    if parser.tokens.is_empty() {
        Ok(value)
    } else {
        syntax()
    }
}

fn tokens(mut text: &str) -> Result<Vec<Token>, ToolError> {
    const SIGNS: [&str; 8] = ["**", "//", "+", "-", "*", "/", "(", ")"];
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start_matches(' ');
        if text.is_empty() {
            return Ok(tokens);
        }
        if let Some(sign) = SIGNS.into_iter().find(|sign| text.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            text = &text[sign.len()..];
            continue;
        }
        // One point at most: `1.2.3` is two numbers, which nothing joins.
        let digits = |text: &str| {
            text.find(|char: char| !char.is_ascii_digit())
                .unwrap_or(text.len())
        };
        let mut end = digits(text);
        if text[end..].starts_with('.') {
            end += 1;
            end += digits(&text[end..]);
        }
        tokens.push(Token::Number(number(&text[..end])?));
        text = &text[end..];
    }
}

fn number(digits: &str) -> Result<Number, ToolError> {
    if digits.contains('.') {
        return match digits.parse() {
            Ok(float) => Ok(Number::Float(float)),
            Err(_) => syntax(),
        };
    }
    if digits.starts_with('0') && !digits.trim_start_matches('0').is_empty() {
        return fail("leading zeros in decimal integer literals are not permitted");
    }
    // A digit needs at most four bits.
    if digits.len() as u64 > MOST_BITS / 4 {
        return too_large();
    }
    match digits.parse() {
        Ok(int) => Ok(Number::Int(int)),
        Err(_) => syntax(),
    }
}

fn too_large<T>() -> Result<T, ToolError> {
    fail("the number is too large")
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn take(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.tokens.split_first()? {
            (Token::Sign(sign), rest) if signs.contains(sign) => {
                self.tokens = rest;
                Some(sign)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<Number, ToolError> {
        let mut value = self.product()?;
        while let Some(sign) = self.take(&["+", "-"]) {
            value = value.with(sign, &self.product()?)?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Number, ToolError> {
        let mut value = self.signed()?;
        while let Some(sign) = self.take(&["*", "/", "//"]) {
            value = value.with(sign, &self.signed()?)?;
        }
        Ok(value)
    }

    /// Signs bind less tightly than the power on their right.
    fn signed(&mut self) -> Result<Number, ToolError> {
        let mut negative = false;
        while let Some(sign) = self.take(&["+", "-"]) {
            negative ^= sign == "-";
        }
        let value = self.power()?;
        Ok(if negative { value.negated() } else { value })
    }

    fn power(&mut self) -> Result<Number, ToolError> {
        let base = self.atom()?;
        if self.take(&["**"]).is_none() {
            return Ok(base);
        }
        self.deeper(|parser| {
            let exponent = parser.signed()?;
            base.raised(&exponent)
        })
    }

    fn atom(&mut self) -> Result<Number, ToolError> {
        if self.take(&["("]).is_some() {
            let value = self.deeper(Self::sum)?;
            return match self.take(&[")"]) {
                Some(_) => Ok(value),
                None => syntax(),
            };
        }
        match self.tokens.split_first() {
            Some((Token::Number(number), rest)) => {
                self.tokens = rest;
                Ok(number.clone())
            }
            _ => syntax(),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ToolError>) -> Result<T, ToolError> {
        if self.depth == DEEPEST {
            return fail("too many nested parentheses");
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }
}

impl Number {
    fn float(&self) -> Result<f64, ToolError> {
        match self {
            Self::Float(float) => Ok(*float),
            Self::Int(int) => match int.to_f64().filter(|float| float.is_finite()) {
                Some(float) => Ok(float),
                None => fail("int too large to convert to float"),
            },
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Self::Int(int) => int.is_zero(),
            Self::Float(float) => *float == 0.0,
        }
    }

    fn negated(self) -> Self {
        match self {
            Self::Int(int) => Self::Int(-int),
            Self::Float(float) => Self::Float(-float),
        }
    }

    fn with(&self, sign: &str, other: &Self) -> Result<Self, ToolError> {
        if sign.starts_with('/') && other.is_zero() {
            return fail("division by zero");
        }
        if let (Self::Int(a), Self::Int(b)) = (self, other)
            && sign != "/"
        {
            let value = match sign {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                _ => a.div_floor(b),
            };
            return bounded(value);
        }
        if let (Self::Int(a), Self::Int(b), "/") = (self, other, sign) {
            return quotient(a, b).map(Self::Float);
        }
        let (a, b) = (self.float()?, other.float()?);
        Ok(Self::Float(match sign {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            _ => floor_quotient(a, b),
        }))
    }

    fn raised(self, exponent: &Self) -> Result<Self, ToolError> {
        if let (Self::Int(base), Self::Int(exponent)) = (&self, exponent)
            && !exponent.is_negative()
        {
            let steps = exponent.to_u64().unwrap_or(u64::MAX);
            // 0, 1 and -1 stay small whatever they are raised to.
            if base.bits() <= 1 {
                let is_negative = base.is_negative() && exponent.is_odd();
                let size = i32::from(!base.is_zero() || steps == 0);
                return Ok(Self::Int(BigInt::from(if is_negative { -size } else { size })));
            }
            if base.bits().saturating_mul(steps) > MOST_BITS {
                return too_large();
            }
            return Ok(Self::Int(base.pow(steps as u32)));
        }
        let (base, exponent) = (self.float()?, exponent.float()?);
        if base == 0.0 && exponent < 0.0 {
            return fail("0.0 cannot be raised to a negative power");
        }
        if base < 0.0 && exponent.fract() != 0.0 {
            return fail("float() argument must be a string or a real number, not 'complex'");
        }
        let value = libm::pow(base, exponent);
        if value.is_infinite() && base.is_finite() && exponent.is_finite() {
            return fail("(34, 'Numerical result out of range')");
        }
        Ok(Self::Float(value))
    }
}

fn bounded(value: BigInt) -> Result<Number, ToolError> {
    if value.bits() > MOST_BITS {
        too_large()
    } else {
        Ok(Number::Int(value))
    }
}

/// a / b to the nearest float, however large both are.
fn quotient(a: &BigInt, b: &BigInt) -> Result<f64, ToolError> {
    // 66 bits of the quotient or more, the last of which says whether anything was cut off.
    let shift = 66 + b.bits().cast_signed() - a.bits().cast_signed();
    let (a, b) = if shift > 0 {
        (a << shift, b.clone())
    } else {
        (a.clone(), b << -shift)
    };
    let (whole, rest) = a.div_rem(&b);
    let sticky = (whole << 1u32) + rest.signum() * b.signum();
    let mantissa = sticky.to_f64().unwrap_or(f64::NAN);
    let value = libm::scalbn(mantissa, i32::try_from(-shift - 1).unwrap_or(i32::MIN));
    if value.is_infinite() {
        return fail("integer division result too large for a float");
    }
    Ok(value)
}

/// Python's `//` of floats.
fn floor_quotient(a: f64, b: f64) -> f64 {
    let rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return 0.0_f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calculated(expression: &str) -> Answer {
        let arguments = json!({ "expression": expression });
        tool::<()>().call(&mut (), arguments.as_object().unwrap())
    }

    // What CPython 3.12 gives.
    #[test]
    fn expressions_follow_python() {
        for (expression, value) in [
            ("2 + 2", "4.0"),
            ("2.675", "2.67"),
            ("1.125", "1.12"),
            (" 5. + .5", "5.5"),
            ("-2 ** 2", "-4.0"),
            ("2 ** -1", "0.5"),
            ("2 ** 3 ** 2", "512.0"),
            ("7 // 2 * 2", "6.0"),
            ("-7 // 2", "-4.0"),
            ("7.5 // -2", "-4.0"),
            ("-0.0", "-0.0"),
            ("-0.001", "-0.0"),
            ("1 - - 1", "2.0"),
            ("10 ** 400 // 10 ** 399", "10.0"),
            ("10 ** 400 / 10 ** 399", "10.0"),
            ("1 / 3", "0.33"),
            ("100 * (1 - 0.15)", "85.0"),
            ("00", "0.0"),
            ("007.5", "7.5"),
            ("0 ** 0", "1.0"),
            ("(-1) ** 99999999999999", "-1.0"),
            ("10 ** 16", "1e+16"),
        ] {
            assert_eq!(calculated(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn what_python_refuses_fails() {
        for expression in [
            "",
            " ",
            "(1 + 2",
            "1 2",
            "3-",
            "007 + 1",
            "2(3)",
            "()",
            "7 / 0",
            "7 // 0.0",
            "1 .5",
            "1.2.3",
            "* 2",
            "2 * * 3",
            ".",
            "10 ** 400",
            "9 ** 9 ** 9",
            "0 ** -1",
            "(-8) ** .5",
            "1 + a",
            "10.0 ** 400",
            ")(",
        ] {
            assert!(calculated(expression).is_err(), "{expression}");
        }
        let deep = "(".repeat(100_000);
        assert!(calculated(&deep).is_err());
        assert!(calculated(&"-".repeat(100_000)).is_err());
        assert_eq!(calculated(&("-".repeat(100_000) + "1")).as_deref(), Ok("1.0"));
    }
}
