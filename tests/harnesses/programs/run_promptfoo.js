// says what stands in the test's variables
module.exports = class {
  id() { return 'scripted'; }
  async callApi(prompt, context) {
    const says = context.vars.says;
    return says === 'ERROR' ? { error: 'the provider is gone' } : { output: says };
  }
};
