//! Resource limits of templates: how much one may write for one example, and how much its filters may read and write on
//! the way.

use std::io::{self, Write as _};

use minijinja::value::{Kwargs, Rest, StringInput, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters, functions};

/// Most bytes that a template writes for one example.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// The one function that templates have.
pub(super) const FUNCTION: &str = "range";

/// Most digits of a width or precision in `format`.
const MOST_DIGITS: usize = 3;

/// Most bytes, counted as in [`size`], that all filters together read and write for one example.
const MOST_FILTERED: usize = 64 << 20;

/// Bytes that an element counts as, beside its text.
const ELEMENT: usize = 8;

/// Most numbers of a `range`.
const MOST_NUMBERS: usize = 10_000;

/// Most columns that a level of `tojson` stands to the right of the one around it.
const MOST_JSON_INDENT: usize = 8;

/// Most levels that the values of a row are nested, which is what `serde_json` reads.
const MOST_LEVELS: usize = 128;

/// Filters that do something with their arguments for each element.
const FOR_EACH: [&str; 5] = ["map", "select", "reject", "selectattr", "rejectattr"];

/// Most columns that `indent` moves a text to the right.
const MOST_INDENT: usize = 100;

/// Bytes that filters have read and written during one rendering.
#[derive(Default)]
struct Filtered(usize);

/// A text that has a largest length.
#[derive(Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// The text; templates write nothing but UTF-8.
    pub(super) fn read(self) -> Result<String, std::string::FromUtf8Error> {
        String::from_utf8(self.0)
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST_BYTES {
            return Err(io::Error::other("too much is written"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes out what has no bound, and bounds the rest: no filter gives more than `largest` bytes, counted as in [`size`].
pub(super) fn restrict(environment: &mut Environment<'_>, largest: usize) {
    // A namespace grows with each step of a loop; `debug` shows what is not the template's.
    for name in ["namespace", "dict", "debug"] {
        environment.remove_global(name);
    }
    for name in ["batch", "slice", "zip", "chain", "pprint"] {
        environment.remove_filter(name);
    }
    environment.add_function(FUNCTION, range);
    // The others take and give one value, or look at no more than one step of the engine may.
    for (name, filter) in [
        ("capitalize", Value::from_function(filters::capitalize)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("e", Value::from_function(filters::escape)),
        ("escape", Value::from_function(filters::escape)),
        ("format", Value::from_function(format)),
        ("groupby", Value::from_function(filters::groupby)),
        ("indent", Value::from_function(indent)),
        ("join", Value::from_function(join)),
        ("lines", Value::from_function(filters::lines)),
        ("list", Value::from_function(filters::list)),
        ("lower", Value::from_function(filters::lower)),
        ("map", Value::from_function(filters::map)),
        ("max", Value::from_function(filters::max)),
        ("min", Value::from_function(filters::min)),
        ("reject", Value::from_function(filters::reject)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
        ("replace", Value::from_function(replace)),
        ("reverse", Value::from_function(filters::reverse)),
        ("safe", Value::from_function(filters::safe)),
        ("select", Value::from_function(filters::select)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("sort", Value::from_function(filters::sort)),
        ("split", Value::from_function(filters::split)),
        ("string", Value::from_function(filters::string)),
        ("sum", Value::from_function(sum)),
        ("title", Value::from_function(filters::title)),
        ("tojson", Value::from_function(tojson)),
        ("trim", Value::from_function(filters::trim)),
        ("unique", Value::from_function(filters::unique)),
        ("upper", Value::from_function(filters::upper)),
    ] {
        let charged = move |state: &mut State<'_, '_>, values: Rest<ValueOrKwargs>| {
            if FOR_EACH.contains(&name) {
                charge_each(state, &values)?;
            }
            let values = values.into_values();
            charge(state, 1, size(&values, MOST_FILTERED)?)?;
            let given = filter.call(state, &values)?;
            let size = size(std::slice::from_ref(&given), largest).map_err(|_| {
                let problem = format!("the filter {name} gives more than {largest} bytes for this example");
                Error::new(ErrorKind::InvalidOperation, problem)
            })?;
            charge(state, 1, size)?;
            Ok::<_, Error>(given)
        };
        environment.add_filter(name, charged);
    }
}

fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    let numbers = functions::range(lower, upper, step)?;
    if numbers.try_iter()?.count() > MOST_NUMBERS {
        let problem = format!("range gives at most {MOST_NUMBERS} numbers");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    Ok(numbers)
}

/// The bytes of the texts in some values and [`ELEMENT`] for each of their elements, if not more than `most`.
fn size(values: &[Value], most: usize) -> Result<usize, Error> {
    fn add(value: &Value, left: &mut usize) -> Result<(), Error> {
        let own = value.as_bytes().map_or(0, <[u8]>::len).saturating_add(ELEMENT);
        *left = left.checked_sub(own).ok_or_else(too_much)?;
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => {
                value.try_iter()?.try_for_each(|element| add(&element, left))
            }
            ValueKind::Map => value.try_iter()?.try_for_each(|key| {
                add(&key, left)?;
                add(&value.get_item(&key)?, left)
            }),
            _ => Ok(()),
        }
    }
    let mut left = most;
    values.iter().try_for_each(|value| add(value, &mut left))?;
    Ok(most - left)
}

fn replace(
    state: &mut State<'_, '_>,
    text: StringInput<'_>,
    from: StringInput<'_>,
    to: StringInput<'_>,
) -> Result<Value, Error> {
    let times = text.as_str().matches(from.as_str()).count();
    charge(state, times, to.as_str().len())?;
    filters::replace(state, text, from, to)
}

fn join(
    state: &mut State<'_, '_>,
    list: &Value,
    between: Option<StringInput<'_>>,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<Value, Error> {
    let named_one = named.peek::<Option<String>>("d")?;
    let length = between.as_ref().map_or(0, |between| between.as_str().len());
    let length = length.max(named_one.map_or(0, |between| between.len()));
    charge(state, list.try_iter().map_or(0, Iterator::count), length)?;
    filters::join(state, list, between, attribute, named)
}

fn format(state: &mut State<'_, '_>, text: &Value, values: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let written = text.as_str().unwrap_or_default();
    let wide = written
        .split(|c: char| !c.is_ascii_digit())
        .any(|digits| digits.len() > MOST_DIGITS);
    if wide || written.contains('*') {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("format takes numbers of at most {MOST_DIGITS} digits, and no `*`"),
        ));
    }
    let conversions = written.matches('%').count();
    // One value may be written by each of them.
    let each = length(&values)?.saturating_add(10_usize.pow(MOST_DIGITS as u32));
    charge(state, conversions, each)?;
    filters::format(state, text, values)
}

/// A first value to add to could be a text or a list, which would be copied for each element.
fn sum(
    state: &mut State<'_, '_>,
    list: Value,
    attribute: Option<&str>,
    named: Kwargs,
) -> Result<Value, Error> {
    if named.has("start") {
        let problem = "sum takes no `start`";
        return Err(Error::new(ErrorKind::TooManyArguments, problem));
    }
    filters::sum(state, list, attribute, None, named)
}

fn indent(
    state: &mut State<'_, '_>,
    text: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    named: Kwargs,
) -> Result<Value, Error> {
    let wide = width.or(named.peek::<Option<usize>>("width")?).unwrap_or(4);
    if wide > MOST_INDENT {
        let problem = format!("indent takes at most {MOST_INDENT} columns");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    charge(state, text.as_str().lines().count(), wide)?;
    filters::indent(text, width, first, None, named)
}

/// The cost of a filter that does something with its arguments for each element of a list.
fn charge_each(state: &mut State<'_, '_>, values: &[ValueOrKwargs]) -> Result<(), Error> {
    let Some((list, arguments)) = values.split_first() else {
        return Ok(());
    };
    let elements = list.try_iter().map_or(0, Iterator::count);
    charge(state, elements, length(arguments)?)
}

/// The bytes of some values as text, at most [`MOST_BYTES`].
fn length(values: &[ValueOrKwargs]) -> Result<usize, Error> {
    let mut text = Text::default();
    for value in values {
        write!(text, "{}", **value).map_err(|_| too_much())?;
    }
    Ok(text.0.len())
}

fn tojson(
    state: &mut State<'_, '_>,
    value: &Value,
    indent: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let asked = indent.clone().or(named.peek::<Option<Value>>("indent")?);
    let wide = match asked {
        None => 0,
        Some(asked) => match bool::try_from(asked.clone()) {
            Ok(indents) => 2 * usize::from(indents),
            Err(_) => usize::try_from(asked)?,
        },
    };
    if wide > MOST_JSON_INDENT {
        let problem = format!("tojson takes an indent of at most {MOST_JSON_INDENT}");
        return Err(Error::new(ErrorKind::InvalidOperation, problem));
    }
    // Each element may begin a line, as far to the right as values are nested.
    let elements = size(std::slice::from_ref(value), MOST_FILTERED)? / ELEMENT;
    charge(state, elements, wide * MOST_LEVELS)?;
    filters::tojson(value, indent, named)
}

fn charge(state: &mut State<'_, '_>, times: usize, bytes: usize) -> Result<(), Error> {
    let filtered = state.get_or_insert_extension_with(Filtered::default);
    filtered.0 = filtered.0.saturating_add(times.saturating_mul(bytes));
    if filtered.0 > MOST_FILTERED {
        return Err(too_much());
    }
    Ok(())
}

fn too_much() -> Error {
    let problem = format!("its filters read and write more than {} MiB", MOST_FILTERED >> 20);
    Error::new(ErrorKind::InvalidOperation, problem)
}
