//! From text to a whole study: what the file says, checked, with the method's defaults written out.

use super::methods;
use crate::study::{Format, Setting, Study, StudyError};

impl Study {
    /// Parses and checks a study file's text.
    ///
    /// ```
    /// use capo_core::study::{Format, Study};
    ///
    /// let text = r#"
    ///     [study]
    ///     name = "help desk"
    ///     [workload]
    ///     kind = "desk"
    ///     [prompt]
    ///     text = "You answer customers."
    ///     [objective]
    ///     metric = "success"
    ///     [[constraint]]
    ///     metric = "human_requests"
    ///     threshold = 0.35
    ///     [models.agent]
    ///     provider = "simulated"
    /// "#;
    /// let study = Study::parse(text, Format::Toml)?;
    /// assert_eq!(study.study.method, "capo");
    /// assert_eq!(study.method["beta"], 4.0); // defaults are written out
    ///
    /// let mistyped = text.replace("threshold", "treshold");
    /// let error = Study::parse(&mistyped, Format::Toml).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `threshold`?"));
    /// # Ok::<(), capo_core::study::StudyError>(())
    /// ```
    ///
    /// # Errors
    /// Syntax errors with line and column, unknown keys with the nearest valid one, numbers that are not
    /// finite, and values that no workload could make sense of. What depends on the workload (metrics, splits) is
    /// checked by [`Problem::new`](super::problem::Problem::new).
    pub fn parse(text: &str, format: Format) -> Result<Self, StudyError> {
        Self::parse_with(text, format, &[])
    }

    /// Like [`Study::parse`], with some keys set otherwise than in the text.
    ///
    /// # Errors
    /// See [`Study::parse`]; what a setting does wrong is told with its key.
    pub fn parse_with(text: &str, format: Format, settings: &[Setting]) -> Result<Self, StudyError> {
        Self::read(text, format, settings)?.checked()
    }

    /// Checks what can be checked without the workload, and writes the method's defaults out.
    ///
    /// # Errors
    /// See [`Study::parse`].
    pub fn checked(mut self) -> Result<Self, StudyError> {
        self.check()?;
        let name = &self.study.method;
        self.method = methods::complete(name, &self.method)?;
        if self.study.batch.is_some() && !methods::build(name, &self.method)?.takes_batches() {
            let problem = format!(
                "`{name}` says by itself which examples it measures on before all of them; leave `batch` and \
                 `batch_growth` out"
            );
            return Err(StudyError::invalid("study.batch", problem));
        }
        Ok(self)
    }
}
