//! The plate around a chart: what it is, its reading of this moment, and the same data as a table.

use std::collections::BTreeMap;

use leptos::{ev, html::Details, prelude::*};
use leptos_router::components::A;

use crate::format::NOTHING;

/// The data of a chart as a table. The first cell of a row names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableData {
    /// The headers; the first stands over the names of the rows.
    pub headers: Vec<String>,
    /// The rows, each with as many cells as there are headers.
    pub rows: Vec<Vec<String>>,
    /// Where cells that read so lead to, ids of prompts for example.
    pub links: BTreeMap<String, String>,
}

impl TableData {
    /// A table with these headers, each with a capital first letter, and no rows yet.
    pub fn with_headers(headers: &[&str]) -> Self {
        Self {
            headers: headers.iter().map(|header| capitalised(header)).collect(),
            ..Self::default()
        }
    }

    /// Whether a column holds numbers, with or without a unit, and nothing else.
    fn has_numbers(&self, column: usize) -> bool {
        let is_number = |cell: &&String| {
            let number = cell.strip_prefix("≤ ").unwrap_or(cell);
            let first = number.split(' ').next().unwrap_or_default();
            first.contains(|one: char| one.is_ascii_digit())
                && first
                    .chars()
                    .all(|one| one.is_ascii_digit() || ".,%+−$kM".contains(one))
        };
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let mut told = cells
            .filter(|cell| !["", NOTHING].contains(&cell.as_str()))
            .peekable();
        told.peek().is_some() && told.all(|cell| is_number(&cell))
    }
}

/// With a capital first letter. A Greek one stays: λ and Λ are not the same.
fn capitalised(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// A plate with a chart. Its element has the id `plate-` and its letter, and can take the focus.
#[component]
pub fn Figure(
    /// The plate's letter on its page.
    #[prop(into)]
    letter: Signal<&'static str>,
    /// What the figure shows.
    #[prop(into)]
    name: Signal<String>,
    /// The same as it is written in the header, if that is more than text.
    #[prop(into, optional)]
    heading: Option<ViewFn>,
    /// The unit, or another note beside the name.
    #[prop(into, optional)]
    unit: Signal<String>,
    /// The reading of this moment, at the right of the header.
    #[prop(into, optional)]
    now: ViewFn,
    /// One sentence that reads the figure.
    #[prop(into)]
    reading: ViewFn,
    /// The same data as a table.
    #[prop(into)]
    table: Signal<TableData>,
    children: Children,
) -> impl IntoView {
    let id = move || format!("plate-{}", letter.get());
    let title = move || format!("title-{}", letter.get());
    let heading = heading.unwrap_or_else(|| ViewFn::from(move || name.get()));
    let beside = move || {
        let unit = unit.get();
        (!unit.is_empty()).then(|| view! { " " <span class="unit">{unit}</span> })
    };
    view! {
        <figure
            class="plate"
            id=id
            tabindex="-1"
            aria-labelledby=title
        >
            <header>
                <h2 class="pt" id=title>
                    <span class="letter" aria-hidden="true">
                        {move || letter.get()}
                    </span>
                    <span>{move || heading.run()} {beside}</span>
                </h2>
                <span class="now">{move || now.run()}</span>
            </header>
            {children()}
            <figcaption class="reading">{move || reading.run()}</figcaption>
            <AsTable table=table name=name />
        </figure>
    }
}

/// The table that stands for a chart, drawn once it is opened.
#[component]
pub fn AsTable(
    /// What the chart draws, by rows and columns.
    #[prop(into)]
    table: Signal<TableData>,
    /// What the table shows, for those who hear it.
    #[prop(into)]
    name: Signal<String>,
) -> impl IntoView {
    let details = NodeRef::<Details>::new();
    let (is_open, set_open) = signal(false);
    let toggled = move |_: ev::Event| set_open.set(details.get().is_some_and(|details| details.open()));
    view! {
        <details class="astable" node_ref=details on:toggle=toggled>
            <summary>"View as table"</summary>
            <Show when=move || is_open.get()>
                <div
                    class="scroll"
                    tabindex="0"
                    role="group"
                    aria-label=move || format!("{} as table, scrolls sideways", name.get())
                >
                    <Table table=table />
                </div>
            </Show>
        </details>
    }
}

#[component]
fn Table(table: Signal<TableData>) -> impl IntoView {
    let table = Memo::new(move |_| table.get());
    // Numbers stand at the right; the first column names the rows.
    let classes = Memo::new(move |_| {
        table.with(|table| {
            let class = |column| {
                if column > 0 && table.has_numbers(column) {
                    "num"
                } else {
                    ""
                }
            };
            (0..table.headers.len()).map(class).collect::<Vec<_>>()
        })
    });
    let class = move |column: usize| classes.with(|classes| classes.get(column).copied().unwrap_or_default());
    let header = move |(column, header): (usize, String)| {
        view! {
            <th scope="col" class=class(column)>
                {header}
            </th>
        }
    };
    let content = move |cell: String| match table.with(|table| table.links.get(&cell).cloned()) {
        Some(href) => view! {
            <A href=href scroll=false attr:class="id">
                {cell}
            </A>
        }
        .into_any(),
        None => cell.into_any(),
    };
    let row = move |cells: Vec<String>| {
        let mut cells = cells.into_iter().enumerate();
        let name = cells.next().map(|(_, name)| content(name));
        let others = cells.map(|(column, cell)| view! { <td class=class(column)>{content(cell)}</td> });
        view! {
            <tr>
                <th scope="row">{name}</th>
                {others.collect_view()}
            </tr>
        }
    };
    view! {
        <table>
            <thead>
                <tr>{move || table.get().headers.into_iter().enumerate().map(header).collect_view()}</tr>
            </thead>
            <tbody>{move || table.get().rows.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_numbers_are_told_from_others() {
        let cells = |row: [&str; 6]| row.map(str::to_owned).to_vec();
        let mut table =
            TableData::with_headers(&["Prompt", "Parent", "Success", "Gate", "Threshold", "Nobody"]);
        table.rows = vec![cells(["6f50c5", "–", "−1.20k", "3 lines", "≤ 30%", "–"])];
        table
            .rows
            .push(cells(["a1b2c3", "6f50c5", "–", "no child", "≤ 5.00k", "–"]));
        table
            .rows
            .push(cells(["d4e5f6", "123456", "64.0% ± 1.5", "–", "≤ $0.01", "–"]));
        table.rows.push(cells(["abcdef", "a1b2c3", "0.5", "–", "–", "–"]));
        let numbers = [1, 2, 3, 4, 5].map(|column| table.has_numbers(column));
        assert_eq!(numbers, [false, true, false, true, false]);
    }
}
